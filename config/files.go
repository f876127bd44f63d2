package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxFile is the most bytes a document file or a file it names may have.
const maxFile = 10 << 20

var errTooLarge = fmt.Errorf("has more than %d MiB", maxFile>>20)

// readPaths reads the document files of paths; what cannot be read is an Error.
func readPaths(paths []string) ([]File, Errors) {
	names, faults := documentPaths(paths)
	var files []File
	for _, name := range names {
		data, err := readLimited(name)
		if err != nil {
			faults = append(faults, &Error{File: name, Message: reason(err)})
			continue
		}
		files = append(files, File{Path: name, Data: data})
	}
	return files, faults
}

// documentPaths names the document files of paths, each once.
func documentPaths(paths []string) ([]string, Errors) {
	var names []string
	var faults Errors
	seen := make(map[string]bool)
	for _, path := range paths {
		found, err := expandPath(path)
		if err != nil {
			faults = append(faults, &Error{File: path, Message: reason(err)})
		}
		for _, name := range found {
			if key := absolute(name); !seen[key] {
				seen[key] = true
				names = append(names, name)
			}
		}
	}
	return names, faults
}

// expandPath gives path itself or, of a directory, its YAML files.
func expandPath(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{filepath.Clean(path)}, nil
	}
	entries, err := os.ReadDir(path) // sorted
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if name := filepath.Join(path, e.Name()); IsDocument(e.Name()) && !isDir(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("the directory holds no *.yaml or *.yml file")
	}
	return names, nil
}

// IsDocument tells, by their names, a directory's documents from other files and
// from editors' lock and swap files.
func IsDocument(name string) bool {
	ext := filepath.Ext(name)
	return (ext == ".yaml" || ext == ".yml") && !strings.HasPrefix(name, ".")
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// readIncluded reads a file that a document names. Only a regular file: a pipe
// could wait for ever.
func readIncluded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is not a regular file")
	}
	return readLimited(path)
}

// readLimited never reads more than maxFile, also of an endless device.
func readLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, errTooLarge
	}
	return data, nil
}

// reason gives the cause of a file error without the path, which stands in
// front of the message already.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}
