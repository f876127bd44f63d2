package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

// documents are the files of the repository that every archive contains.
var documents = []string{"LICENSE", "README.md", "THIRD_PARTY_NOTICES.md"}

// unitFile is the systemd unit, which the archives for Linux contain.
const unitFile = "examples/deploy/rolecall.service"

// entry is a file in an archive.
type entry struct {
	name    string
	mode    fs.FileMode
	content []byte
}

// writeArchives writes the archive of each program: a zip for Windows, else a tar.gz. All
// files are in one folder, which has the name of the archive.
func (r *release) writeArchives() error {
	for _, p := range r.programs {
		entries, err := r.entries(p)
		if err != nil {
			return err
		}
		pack := packTar
		if p.os == "windows" {
			pack = packZip
		}
		content, err := pack(entries, r.folderName(p), r.time)
		if err == nil {
			err = r.writeFile(r.archiveName(p), content)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// folderName returns the name of the folder in the archive of a program.
func (r *release) folderName(p program) string { return r.prefix() + "_" + p.os + "_" + p.arch }

// archiveName returns the name of the archive of a program.
func (r *release) archiveName(p program) string {
	if p.os == "windows" {
		return r.folderName(p) + ".zip"
	}
	return r.folderName(p) + ".tar.gz"
}

// entries returns the files of an archive.
func (r *release) entries(p program) ([]entry, error) {
	names := documents
	if p.os == "linux" {
		names = append(names[:len(names):len(names)], unitFile)
	}
	list := []entry{{p.name(), 0o755, p.content}}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(r.source, name))
		if err != nil {
			return nil, err
		}
		list = append(list, entry{path.Base(name), 0o644, content})
	}
	return list, nil
}

// packTar returns a tar.gz of files with one time, which belong to root.
func packTar(entries []entry, folder string, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(compressed)
	for _, e := range entries {
		h := &tar.Header{Name: path.Join(folder, e.name), Mode: int64(e.mode), Size: int64(len(e.content)), ModTime: at, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	err = compressed.Close()
	return out.Bytes(), err
}

// packZip returns a zip of files with one time.
func packZip(entries []entry, folder string, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, e := range entries {
		h := &zip.FileHeader{Name: path.Join(folder, e.name), Method: zip.Deflate, Modified: at.UTC()}
		h.SetMode(e.mode)
		f, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := f.Write(e.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}
