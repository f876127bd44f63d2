package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// readPaths reads the document files at paths. It returns an Error for each file
// that cannot be read.
func readPaths(paths []string) ([]yamldoc.File, yamldoc.Errors) {
	names, errs := documentPaths(paths)
	var files []yamldoc.File
	for _, name := range names {
		data, err := readDocuments(name)
		if err != nil {
			errs = append(errs, &yamldoc.Error{File: name, Message: fileReason(err)})
			continue
		}
		files = append(files, yamldoc.File{Path: name, Data: data})
	}
	return files, errs
}

// readDocuments reads one file of documents, which may be a prebuilt one.
func readDocuments(name string) ([]byte, error) {
	if toolboxfile.IsPrebuilt(name) {
		return toolboxfile.ReadPrebuilt(name)
	}
	return readLimited(name, yamldoc.MaxFileSize)
}

// documentPaths returns the document files at paths, each once.
func documentPaths(paths []string) ([]string, yamldoc.Errors) {
	var names []string
	var errs yamldoc.Errors
	seen := make(map[string]bool)
	for _, path := range paths {
		found, err := expandPath(path)
		if err != nil {
			errs = append(errs, &yamldoc.Error{File: path, Message: fileReason(err)})
		}
		for _, name := range found {
			if key := absolute(name); !seen[key] {
				seen[key] = true
				names = append(names, name)
			}
		}
	}
	return names, errs
}

// expandPath returns path itself or, for a directory, the YAML files in it.
func expandPath(path string) ([]string, error) {
	if toolboxfile.IsPrebuilt(path) {
		return []string{path}, nil
	}
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
		return nil, errors.New("the directory has no *.yaml or *.yml file")
	}
	return names, nil
}

// IsDocument reports whether a file in a directory is read as a document, by its
// name. It excludes hidden files, such as the lock and swap files of editors.
func IsDocument(name string) bool {
	ext := filepath.Ext(name)
	return (ext == ".yaml" || ext == ".yml") && !strings.HasPrefix(name, ".")
}

// isDir reports whether path is a directory, or a link to one.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// absolute returns path as an absolute path, by which duplicates are found.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// readIncluded reads a file that a document names.
func readIncluded(path string) ([]byte, error) { return readRegular(path, yamldoc.MaxFileSize) }

// readRegular reads a file of at most most bytes. It accepts regular files only,
// because reading a pipe could block forever.
func readRegular(path string, most int) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is not a regular file")
	}
	return readLimited(path, most)
}

// readLimited reads a file and rejects one of more than most bytes. It reads no more
// than that, because the path may be an endless device.
func readLimited(path string, most int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err != nil {
		return nil, err
	}
	if len(data) > most {
		return nil, errTooLarge(most)
	}
	return data, nil
}

// errTooLarge returns the error for a file of more than most bytes.
func errTooLarge(most int) error {
	if most == yamldoc.MaxFileSize {
		return yamldoc.ErrTooLarge
	}
	return fmt.Errorf("has more than %d KiB", most>>10)
}

// fileReason returns the text of a file error without the path, which the message
// already begins with.
func fileReason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}
