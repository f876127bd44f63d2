package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/org"
)

// readTaskFiles reads the files of the flags --image and --attach. A file of --image must be
// an image that models can be shown.
func readTaskFiles(images, attached []string) ([]org.TaskFile, error) {
	var list []org.TaskFile
	for _, path := range images {
		f, err := readTaskFile(path)
		if err == nil && !f.IsImage() {
			err = fmt.Errorf("%s is not a PNG, JPEG, GIF or WebP image; use --attach for other files", path)
		}
		if err != nil {
			return nil, usageError{fmt.Errorf("--image: %w", err)}
		}
		list = append(list, f)
	}
	for _, path := range attached {
		f, err := readTaskFile(path)
		if err != nil {
			return nil, usageError{fmt.Errorf("--attach: %w", err)}
		}
		list = append(list, f)
	}
	if err := org.CheckTaskFiles(list); err != nil {
		return nil, usageError{fmt.Errorf("--image and --attach: %s", strings.TrimPrefix(errcode.Message(err), "files of the task: "))}
	}
	return list, nil
}

// readTaskFile reads a file that is given to a task. It rejects a file that is too large for a task
// before it reads it.
func readTaskFile(path string) (org.TaskFile, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return org.TaskFile{}, err
	case !info.Mode().IsRegular():
		return org.TaskFile{}, fmt.Errorf("%s is not a file", path)
	case info.Size() > org.MaxTaskFileBytes:
		return org.TaskFile{}, fmt.Errorf("%s has %d bytes; the files of a task have at most %d together", path, info.Size(), org.MaxTaskFileBytes)
	}
	data, err := os.ReadFile(path)
	return org.TaskFile{Name: filepath.Base(path), Data: data}, err
}
