package resource

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/tool"
)

// maxQuote is how many bytes of a path of the caller an error quotes.
const maxQuote = 80

// readBelow returns the text of a file of a template. path is the caller's.
func readBelow(r toolboxfile.Resource, path string) (tool.Result, error) {
	dir, name, err := locate(r, path)
	if err != nil {
		return tool.Result{}, err
	}
	return readFile(dir, name, r.MaxSize)
}

// locate returns the directory of a template that has a file, and the path of the file below it.
// The path has to be clean before it is looked for, so that no two spellings mean one file.
func locate(r toolboxfile.Resource, path string) (dir, name string, err error) {
	whole := r.Before + path + r.After
	if !fs.ValidPath(strings.TrimPrefix(whole, "/")) || !strings.HasPrefix(whole, "/") || strings.ContainsAny(whole, "\\\x00") {
		return "", "", errcode.New(errcode.PathTraversal, "%q is not the clean path of a file", textutil.Truncate(path, maxQuote))
	}
	if !toolboxfile.HasTextExtension(whole) {
		return "", "", errcode.New(errcode.PathTraversal, "%q is not a file of text", textutil.Truncate(path, maxQuote))
	}
	for _, dir := range r.Allowed {
		name, err := filepath.Rel(dir, filepath.FromSlash(trimDriveSlash(whole)))
		if err == nil && name != "." && filepath.IsLocal(name) {
			return dir, name, nil
		}
	}
	return "", "", errcode.New(errcode.PathTraversal, "%q is in none of the directories of the resource", textutil.Truncate(path, maxQuote))
}

// trimDriveSlash returns the path of a file URI without the slash before a drive of Windows, /C:/docs.
func trimDriveSlash(path string) string {
	if filepath.Separator == '\\' && len(path) > 2 && path[2] == ':' {
		return path[1:]
	}
	return path
}

// readFile returns the text of a file below a directory. Links are followed within the directory.
func readFile(dir, name string, most int) (tool.Result, error) {
	file, err := openFile(dir, name)
	if err != nil {
		return tool.Result{}, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, int64(most)+1))
	switch {
	case err != nil:
		return tool.Result{}, errcode.Wrap(errcode.ToolExecutionFailed, err, "the file cannot be read")
	case len(data) > most:
		return tool.Result{}, errcode.New(errcode.ResultTooLarge, "the file has more than %d bytes, the maxSize of the resource", most)
	case !utf8.Valid(data):
		return tool.Result{}, errcode.New(errcode.ToolExecutionFailed, "the file is not UTF-8 text")
	}
	return tool.Result{Text: string(data)}, nil
}

// openFile opens a regular file below a directory, and no other. It does not wait for pipes. Errors
// do not name the directory.
func openFile(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fileError(err)
	}
	defer root.Close()
	if target, err := filepath.EvalSymlinks(filepath.Join(dir, name)); err == nil && !toolboxfile.HasTextExtension(target) {
		return nil, errNotText
	}
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fileError(err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		return nil, errors.Join(fileError(err), file.Close())
	}
	return file, nil
}

var (
	errNotText    = errcode.New(errcode.PathTraversal, "the link leads to a file that is not text")
	errNotRegular = errcode.New(errcode.FileNotFound, "it is not a regular file")
)

// fileError returns the error of a file that cannot be opened.
func fileError(err error) error {
	if _, coded := errors.AsType[*errcode.Error](err); coded {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return errcode.Wrap(errcode.FileNotFound, err, "there is no such file")
	}
	if errors.Is(err, fs.ErrPermission) {
		return errcode.Wrap(errcode.ToolExecutionFailed, err, "the file may not be read")
	}
	return errcode.Wrap(errcode.PathTraversal, err, "the file cannot be opened within its directory")
}

// version returns a text that differs once a file has changed.
func version(dir, name string) string {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "absent"
	}
	defer root.Close()
	info, err := root.Stat(name)
	if err != nil {
		return "absent"
	}
	return fmt.Sprint(info.ModTime().UnixNano(), " ", info.Size())
}
