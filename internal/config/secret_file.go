package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rolecall/rolecall/internal/yamldoc"
)

// SecretFile is a file that a document names as ${file:PATH}. Config has its digest, to
// detect a change, but never its content, which is not recorded with tasks.
type SecretFile struct {
	Path string
	Sum  [sha256.Size]byte // of the content; zero if it could not be read
}

// maxSecretFile is the largest size of a secret file in bytes.
const maxSecretFile = 64 << 10

// secretText is the content of a secret file, or why it cannot be read.
type secretText struct {
	text string
	err  error
}

// secretFiles are the secret files that were read, by path.
type secretFiles map[string]secretText

// read returns the content of a secret file. It reads a file once.
func (s secretFiles) read(path string) (string, error) {
	known, ok := s[path]
	if !ok {
		known.text, known.err = readSecretFile(path)
		s[path] = known
	}
	return known.text, known.err
}

// list returns the files that were read, sorted by path.
func (s secretFiles) list() (files []SecretFile) {
	for _, path := range slices.Sorted(maps.Keys(s)) {
		f := SecretFile{Path: path}
		if s[path].err == nil {
			f.Sum = sha256.Sum256([]byte(s[path].text))
		}
		files = append(files, f)
	}
	return files
}

// readSecretFile returns the content of a secret file without one line break at its end.
// Its errors do not contain the content.
func readSecretFile(path string) (string, error) {
	data, err := readRegular(path, maxSecretFile)
	switch {
	case err != nil:
		return "", errors.New(fileReason(err))
	case !utf8.Valid(data):
		return "", errors.New("is not text in UTF-8")
	}
	text, broken := strings.CutSuffix(string(data), "\n")
	if broken {
		text = strings.TrimSuffix(text, "\r")
	}
	return text, nil
}

// ReadKey reads KeyFile again. Its error does not contain the content.
func (m Model) ReadKey() (yamldoc.Secret, error) {
	text, err := readSecretFile(m.KeyFile)
	if err != nil {
		return "", fmt.Errorf("file %q: %w", m.KeyFile, err)
	}
	key, ok := yamldoc.ParseKey(text)
	if !ok || key == "" {
		return "", fmt.Errorf("file %q has no valid key", m.KeyFile)
	}
	return key, nil
}
