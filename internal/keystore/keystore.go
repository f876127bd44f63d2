// Package keystore keeps the secret keys of an organization in one file of its data directory.
// With some of them it signs calls of tool services. Others sign or seal other things.
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
	"crypto/subtle"
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

// check reports what is wrong with keys that the store did not write.
func (c content) check() error {
	for _, k := range c.Keys {
		if k.Use == "" || k.Name == "" || len(k.Secret) < minSecret {
			return fmt.Errorf("the key %.20q has no use, no name or a secret of less than %d bytes", k.ID, minSecret)
		}
	}
	return nil
}

// minSecret is the smallest number of bytes of a secret that is read. An empty one would let
// everything in.
const minSecret = 16

// validKeys returns the keys of a use and name that are valid at a time, the newest first.
func (c content) validKeys(use Use, name string, now time.Time) (list []Key) {
	for _, k := range c.Keys {
		if k.Use == use && k.Name == name && k.isValid(now) {
			list = append(list, k)
		}
	}
	slices.SortStableFunc(list, compareExpiry)
	return list
}

// compareExpiry orders keys of one use and name: the newest, which does not expire, is first.
func compareExpiry(a, b Key) int {
	switch {
	case a.Expires.IsZero() && b.Expires.IsZero(): // in a file that was edited by hand
		return b.Created.Compare(a.Created)
	case a.Expires.IsZero():
		return -1
	case b.Expires.IsZero():
		return 1
	}
	return b.Expires.Compare(a.Expires)
}

// Store reads and changes the file. It is safe for concurrent use.
type Store struct {
	path string
	now  func() time.Time

	mu      sync.Mutex  // guards what follows
	last    content     // what was read last
	info    fs.FileInfo // of the file that was read; nil if there is none
	checked time.Time   // when last was compared with the file
}

// Open returns the store of a data directory. It reads nothing yet.
func Open(dir string) *Store { return &Store{path: filepath.Join(dir, FileName), now: time.Now} }

// Limits of the file.
const (
	maxFile  = 4 << 20 // bytes
	maxValid = 8       // keys of one use and name; each signs every call
)

// recheckAfter is how long calls rely on what was read last.
const recheckAfter = time.Second

// load returns the content of the file, which it reads if it has changed. It must be called with
// mu held.
func (s *Store) load() (content, error) {
	now := s.now()
	info, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.last, s.info, s.checked = content{}, nil, now
		return s.last, nil
	case err != nil:
		return content{}, fmt.Errorf("read the keys: %w", err)
	case s.info != nil && os.SameFile(info, s.info) && info.Size() == s.info.Size() && info.ModTime().Equal(s.info.ModTime()):
		s.checked = now
		return s.last, nil
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return content{}, errcode.New(errcode.InvalidConfig, "read the keys: %s is not a file, or larger than %d bytes", s.path, maxFile)
	}
	data, err := os.ReadFile(s.path)
	if err != nil {
		return content{}, fmt.Errorf("read the keys: %w", err)
	}
	var c content
	if err = json.Unmarshal(data, &c); err == nil {
		err = c.check()
	}
	if err != nil {
		return content{}, errcode.Wrap(errcode.InvalidConfig, err, "read the keys: %s is damaged; restore it, or remove it and create new keys", s.path)
	}
	s.last, s.info, s.checked = c, info, now
	return c, nil
}

// recent returns the content that the file had less than recheckAfter ago. It must be called with
// mu held.
func (s *Store) recent() (content, error) {
	if age := s.now().Sub(s.checked); age >= 0 && age < recheckAfter {
		return s.last, nil
	}
	return s.load()
}

// Organization returns the random id of the organization, "" before the first key.
func (s *Store) Organization() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.recent()
	return c.Organization, err
}

// ListKeys returns the keys without their secrets. Keys of one use and name are together, the
// newest first. It leaves out keys that are no longer valid.
func (s *Store) ListKeys() ([]Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.load()
	list := slices.DeleteFunc(slices.Clone(c.Keys), func(k Key) bool { return !k.isValid(s.now()) })
	for i := range list {
		list[i].Secret = ""
	}
	slices.SortStableFunc(list, func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Use, b.Use), cmp.Compare(a.Name, b.Name), compareExpiry(a, b))
	})
	return list, err
}

// ValidKeys returns the keys that are valid now, the newest first.
func (s *Store) ValidKeys(use Use, name string) ([]Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.load()
	return c.validKeys(use, name, s.now()), err
}

// RecentSecrets returns the secrets of the keys that are valid now, the newest first. It reads the
// file at most once a second, so each call of a tool may ask. A change by another process takes
// effect within a second, and the first key takes effect at once.
func (s *Store) RecentSecrets(use Use, name string) (secrets []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.recent()
	list := c.validKeys(use, name, s.now())
	if err == nil && len(list) == 0 {
		c, err = s.load()
		list = c.validKeys(use, name, s.now())
	}
	for _, k := range list {
		secrets = append(secrets, k.Secret)
	}
	return secrets, err
}

// HasSecret reports whether a text is the secret of a key that is valid now. It is false if the
// keys cannot be read.
func (s *Store) HasSecret(use Use, name, text string) bool {
	list, err := s.ValidKeys(use, name)
	return err == nil && slices.ContainsFunc(list, func(k Key) bool { return subtle.ConstantTimeCompare([]byte(k.Secret), []byte(text)) == 1 })
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
	return s.add(use, name, func(valid []*Key) error {
		if len(valid) > 0 {
			return errcode.New(errcode.Conflict, "create a key: %s %q has one, %s; a key is shown only once, so rotate it if it is lost", use, name, valid[len(valid)-1].ID)
		}
		return nil
	})
}

// RotateKey creates a newer key and returns it. Those before stay valid for overlap at most. Errors:
// Conflict if there is no key yet, or too many are valid.
func (s *Store) RotateKey(use Use, name string, overlap time.Duration) (Key, error) {
	return s.add(use, name, func(valid []*Key) error {
		if len(valid) == 0 {
			return errcode.New(errcode.Conflict, "rotate a key: %s %q has none; create one", use, name)
		}
		if overlap > 0 && len(valid) >= maxValid {
			return errcode.New(errcode.Conflict, "rotate a key: %s %q has %d valid keys; wait until one expires, or end them with --now", use, name, len(valid))
		}
		end := s.now().UTC().Add(overlap).Truncate(time.Second)
		for _, k := range valid {
			if k.Expires.IsZero() || k.Expires.After(end) {
				k.Expires = end
			}
		}
		return nil
	})
}

// add adds a key. Before that it calls prepare with the valid keys of the same use and name, the
// oldest first. prepare may change them, and rejects the new key by an error.
func (s *Store) add(use Use, name string, prepare func(valid []*Key) error) (Key, error) {
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
	var valid []*Key
	for i, k := range next.Keys {
		if k.Use == use && k.Name == name {
			valid = append(valid, &next.Keys[i])
		}
	}
	if err := prepare(valid); err != nil {
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
	if len(data) >= maxFile {
		return errcode.New(errcode.LimitExceeded, "write the keys: they would have more than %d bytes; there are too many", maxFile)
	}
	if err := writeFile(s.path, append(data, '\n')); err != nil {
		return fmt.Errorf("write the keys: %w", err)
	}
	s.info, s.checked = nil, time.Time{} // read again
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
