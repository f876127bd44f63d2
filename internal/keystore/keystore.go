// Package keystore keeps the secret keys of an organization in one file of its data directory:
// those with which it signs calls of tool services, and whatever else signs or seals.
//
//	keys := keystore.Open(dataDir)
//	key, err := keys.CreateKey(keystore.Service, "joke-service")
//	newest, ok, err := keys.NewestKey(keystore.Service, "joke-service")
//
// Only the owner can read the file. A backup of the organization does not contain it. Another
// process may change the file; a Store reads it again when it has changed.
package keystore

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/rolecall/rolecall/errcode"
)

// FileName is the name of the file in the data directory.
const FileName = "keys.json"

// Overlap is how long a key stays valid after a newer one.
const Overlap = time.Hour

// Use is what keys are for.
type Use string

// Service keys sign the calls of one tool service, whose name they have. The service presents its
// key as its password at the embedded broker.
const Service Use = "service"

// Key is one key.
type Key struct {
	ID      string    `json:"id"`
	Use     Use       `json:"use"`
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero: it is the newest of its use and name
	Secret  string    `json:"secret"`           // printable ASCII
}

// isValid reports whether the key may be used at a time.
func (k Key) isValid(now time.Time) bool { return k.Expires.IsZero() || now.Before(k.Expires) }

// content is the content of the file.
type content struct {
	Organization string `json:"organization"` // a random id
	Keys         []Key  `json:"keys"`
}

// Store reads and changes the file. It is safe for concurrent use.
type Store struct {
	path string
	now  func() time.Time

	mu     sync.Mutex // guards what follows
	read   content
	size   int64
	mtime  time.Time
	exists bool
}

// Open returns the store of a data directory. It reads nothing yet.
func Open(dir string) *Store { return &Store{path: filepath.Join(dir, FileName), now: time.Now} }

// maxFile is the largest number of bytes of the file.
const maxFile = 4 << 20

// load returns the content of the file, which it reads if it has changed. It must be called with
// mu held.
func (s *Store) load() (content, error) {
	info, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.read, s.exists = content{}, false
		return s.read, nil
	case err != nil:
		return content{}, fmt.Errorf("read the keys: %w", err)
	case s.exists && info.Size() == s.size && info.ModTime().Equal(s.mtime):
		return s.read, nil
	case info.Size() > maxFile:
		return content{}, errcode.New(errcode.InvalidConfig, "read the keys: %s is larger than %d bytes", s.path, maxFile)
	}
	data, err := os.ReadFile(s.path)
	if err != nil {
		return content{}, fmt.Errorf("read the keys: %w", err)
	}
	var c content
	if err := json.Unmarshal(data, &c); err != nil {
		return content{}, errcode.Wrap(errcode.InvalidConfig, err, "read the keys: %s is damaged; restore it, or remove it and create new keys", s.path)
	}
	s.read, s.size, s.mtime, s.exists = c, info.Size(), info.ModTime(), true
	return c, nil
}

// Organization returns the random id of the organization, "" before the first key.
func (s *Store) Organization() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.load()
	return c.Organization, err
}

// ListKeys returns the keys without their secrets: those of one use and name together, the
// newest first. It leaves out those that are no longer valid.
func (s *Store) ListKeys() ([]Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.load()
	list := slices.DeleteFunc(slices.Clone(c.Keys), func(k Key) bool { return !k.isValid(s.now()) })
	for i := range list {
		list[i].Secret = ""
	}
	slices.SortStableFunc(list, func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Use, b.Use), cmp.Compare(a.Name, b.Name), b.Created.Compare(a.Created))
	})
	return list, err
}

// ValidKeys returns the keys that are valid now, the newest first.
func (s *Store) ValidKeys(use Use, name string) ([]Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.load()
	var list []Key
	for _, k := range c.Keys {
		if k.Use == use && k.Name == name && k.isValid(s.now()) {
			list = append(list, k)
		}
	}
	slices.SortStableFunc(list, func(a, b Key) int { return b.Created.Compare(a.Created) })
	return list, err
}

// NewestKey returns the newest key. It reports false if there is none.
func (s *Store) NewestKey(use Use, name string) (Key, bool, error) {
	list, err := s.ValidKeys(use, name)
	if err != nil || len(list) == 0 {
		return Key{}, false, err
	}
	return list[0], true, nil
}

// CreateKey creates the first key of a use and name, and returns it. Errors: Conflict if there is
// one.
func (s *Store) CreateKey(use Use, name string) (Key, error) {
	return s.add(use, name, func(newest *Key) error {
		if newest != nil {
			return errcode.New(errcode.Conflict, "create a key: %s %q has one, %s; a key is shown only once, so rotate it if it is lost", use, name, newest.ID)
		}
		return nil
	})
}

// RotateKey creates a newer key and returns it. The one before stays valid for Overlap. Errors:
// Conflict if there is no key yet.
func (s *Store) RotateKey(use Use, name string) (Key, error) {
	return s.add(use, name, func(newest *Key) error {
		if newest == nil {
			return errcode.New(errcode.Conflict, "rotate a key: %s %q has none; create one", use, name)
		}
		newest.Expires = s.now().UTC().Add(Overlap).Truncate(time.Second)
		return nil
	})
}

// add adds a key after check, which gets the newest one of the same use and name, nil if there is
// none.
func (s *Store) add(use Use, name string, check func(newest *Key) error) (Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	unlock, err := s.lock()
	if err != nil {
		return Key{}, err
	}
	defer unlock()
	old, err := s.load()
	if err != nil {
		return Key{}, err
	}
	next := content{Organization: cmp.Or(old.Organization, uuid.NewString())}
	next.Keys = slices.DeleteFunc(slices.Clone(old.Keys), func(k Key) bool { return !k.isValid(s.now()) })
	at := slices.IndexFunc(next.Keys, func(k Key) bool { return k.Use == use && k.Name == name && k.Expires.IsZero() })
	var newest *Key
	if at >= 0 {
		newest = &next.Keys[at]
	}
	if err := check(newest); err != nil {
		return Key{}, err
	}
	k := Key{ID: newID(), Use: use, Name: name, Created: s.now().UTC().Truncate(time.Millisecond), Secret: "rck_" + rand.Text() + rand.Text()}
	next.Keys = append(next.Keys, k)
	return k, s.write(next)
}

// newID returns a random id of a key.
func newID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// write replaces the file.
func (s *Store) write(c content) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("write the keys: %w", err)
	}
	if err := writeFile(s.path, append(data, '\n')); err != nil {
		return fmt.Errorf("write the keys: %w", err)
	}
	s.exists = false // read again
	return nil
}

// writeFile replaces a file. After a crash it has the old or the new content.
func writeFile(path string, data []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // only the owner can read it
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the entries of a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
