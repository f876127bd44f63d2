package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// vendored is the folder of the libraries of the web page, which go.mod does not name.
const vendored = "gateway/ui/vendor"

// pageLibraries returns the libraries of the web page below a directory of the main module, as
// its vendor.json lists them.
func pageLibraries(root string) (list modules, err error) {
	text, err := os.ReadFile(filepath.Join(root, vendored, "vendor.json"))
	if err != nil {
		return nil, err
	}
	var packages []struct{ Name, Version string }
	if err := json.Unmarshal(text, &packages); err != nil {
		return nil, fmt.Errorf("%s/vendor.json: %w", vendored, err)
	}
	for _, p := range packages {
		list = append(list, module{Path: p.Name + " (web page)", Version: p.Version, Dir: filepath.Join(root, vendored, p.Name)})
	}
	return list, nil
}
