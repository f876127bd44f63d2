package app

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/rolecall/rolecall/identity"
)

// removeTree removes a directory below root, with all that is in it, until ctx ends. It opens
// few files at once, however deep folders are nested: folders below others are moved up before
// they are removed. os.Root.RemoveAll opens one file for each level, and an agent decides how
// many there are. It follows no links, and removes folders that their owner may not read.
func removeTree(ctx context.Context, root *os.Root, name string) error {
	if err := root.Chmod(name, 0o700); err != nil {
		return err
	}
	tree, err := root.OpenRoot(name)
	if err != nil {
		return err
	}
	removeTop := func(e fs.DirEntry) error {
		if !e.IsDir() {
			return tree.Remove(e.Name())
		}
		return removeFolder(ctx, tree, e.Name())
	}
	if err := errors.Join(eachEntry(ctx, tree, ".", removeTop), tree.Close()); err != nil {
		return err
	}
	return root.Remove(name)
}

// removeFolder removes a folder of tree. The folders in it become folders of tree.
func removeFolder(ctx context.Context, tree *os.Root, name string) error {
	if err := tree.Chmod(name, 0o700); err != nil {
		return err
	}
	err := eachEntry(ctx, tree, name, func(e fs.DirEntry) error {
		inner := path.Join(name, e.Name())
		if !e.IsDir() {
			return tree.Remove(inner)
		}
		if err := tree.Chmod(inner, 0o700); err != nil { // a folder that cannot be written cannot be moved
			return err
		}
		return tree.Rename(inner, identity.NewID())
	})
	if err != nil {
		return err
	}
	return tree.Remove(name)
}

// entriesRead is how many entries of a folder are in memory at once.
const entriesRead = 1000

// eachEntry calls remove for the entries of a folder, until it has none.
func eachEntry(ctx context.Context, tree *os.Root, folder string, remove func(fs.DirEntry) error) error {
	for {
		entries, err := readEntries(tree, folder)
		if err != nil || len(entries) == 0 {
			return err
		}
		for _, e := range entries {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := remove(e); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
}

// readEntries returns the first entries of a folder.
func readEntries(tree *os.Root, folder string) ([]fs.DirEntry, error) {
	f, err := tree.Open(folder)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(entriesRead)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return entries, err
}
