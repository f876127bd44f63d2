package workspace

import (
	"cmp"
	"context"
	"encoding/json"
	"io/fs"
	"slices"
	"time"
)

// Limits of one listing.
const (
	maxEntries   = 10_000
	maxListBytes = 3 << 20 // of JSON; a path has up to 25 KB
	maxNames     = 200_000 // visited
	entryBytes   = 110     // of JSON, without the name
)

// ListOptions selects the entries of a Listing. The zero ListOptions selects all
// entries of one folder.
type ListOptions struct {
	Recursive bool // list the contents of subfolders too
	// Pattern selects entries. Without a slash it is matched with the last element of their names.
	// With a slash it is matched with the whole name, and all subfolders are searched.
	Pattern Glob
}

// Listing is the content of a folder. It has at most 10,000 entries and 3 MiB, sorted
// by name.
type Listing struct {
	Path      string  `json:"path"` // clean path of the folder
	Entries   []Entry `json:"entries"`
	Truncated bool    `json:"truncated,omitempty"` // entries are missing: there were too many, or they were nested too deep

	bytes int // of Entries as JSON
}

// Entry is a file, folder or link in a Listing.
type Entry struct {
	Name       string    `json:"name"`       // relative to the listed folder
	Type       string    `json:"type"`       // file, directory, symlink or other
	Size       int64     `json:"size"`       // in bytes; 0 for anything but a regular file
	ModifiedAt time.Time `json:"modifiedAt"` // in UTC, truncated to seconds
}

// ListFiles returns the contents of a folder. It lists symbolic links and does not
// follow them, except for the folder itself. It omits the temporary files of
// WriteFile and the contents of subfolders that cannot be read.
func (d *Dir) ListFiles(ctx context.Context, dir string, o ListOptions) (Listing, error) {
	dir, err := CleanPath(dir)
	if err != nil {
		return Listing{}, err
	}
	o.Recursive = o.Recursive || o.Pattern.spansFolders()
	l := Listing{Path: dir, Entries: []Entry{}}
	w := walker{ctx: ctx, root: d.Root, budget: maxNames, visit: func(name string, info fs.FileInfo) error {
		return l.add(relativeTo(dir, name), info, o)
	}}
	if err := w.walk(dir); err != nil {
		return Listing{}, fileError(d.Root, dir, err)
	}
	l.Truncated = l.Truncated || w.truncated
	slices.SortFunc(l.Entries, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return l, nil
}

// add appends an entry if it matches. Its error controls the walk, like the error of a
// fs.WalkDirFunc.
func (l *Listing) add(name string, info fs.FileInfo, o ListOptions) error {
	if o.Pattern.matches(name) && !isTempFile(name, info) {
		quoted, _ := json.Marshal(name) // a string always marshals
		l.bytes += entryBytes + len(quoted)
		if len(l.Entries) == maxEntries || l.bytes > maxListBytes {
			l.Truncated = true
			return fs.SkipAll
		}
		l.Entries = append(l.Entries, Entry{name, kind(info.Mode()), size(info), modified(info)})
	}
	if info.IsDir() && !o.Recursive {
		return fs.SkipDir
	}
	return nil
}

// kind returns the type of an entry.
func kind(mode fs.FileMode) string {
	switch mode.Type() {
	case 0:
		return "file"
	case fs.ModeDir:
		return "directory"
	case fs.ModeSymlink:
		return "symlink"
	}
	return "other"
}

// size returns the length of a regular file, 0 for anything else.
func size(info fs.FileInfo) int64 {
	if info.Mode().IsRegular() {
		return info.Size()
	}
	return 0
}

// modified returns the modification time in UTC, truncated to seconds.
func modified(info fs.FileInfo) time.Time { return info.ModTime().UTC().Truncate(time.Second) }
