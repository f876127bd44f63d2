package keystore_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/keystore"
)

// createKey creates a key of a service.
func createKey(t *testing.T, s *keystore.Store, name string) keystore.Key {
	t.Helper()
	k, err := s.CreateKey(keystore.Service, name)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// valid returns the ids of the valid keys of a service.
func valid(t *testing.T, s *keystore.Store, name string) (ids []string) {
	t.Helper()
	list, err := s.ValidKeys(keystore.Service, name)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range list {
		ids = append(ids, k.ID)
	}
	return ids
}

func TestStore_KeysOfOneService(t *testing.T) {
	dir := t.TempDir()
	s, other := keystore.Open(dir), keystore.Open(dir)
	joke, bank := createKey(t, s, "joke"), createKey(t, s, "bank")
	if joke.Secret == bank.Secret || !strings.HasPrefix(joke.Secret, "rck_") || len(joke.Secret) < 50 {
		t.Errorf("secrets %q and %q", joke.Secret, bank.Secret)
	}
	k, ok, err := other.NewestKey(keystore.Service, "joke")
	if err != nil || !ok || k.Secret != joke.Secret {
		t.Errorf("another process reads %v, %t, %v", k, ok, err)
	}
	if _, ok, err := other.NewestKey(keystore.Service, "none"); ok || err != nil {
		t.Errorf("a service without a key: %t, %v", ok, err)
	}
	if _, err := s.CreateKey(keystore.Service, "joke"); errcode.CodeOf(err) != errcode.Conflict {
		t.Errorf("a second first key: %v", err)
	}
	if _, err := s.RotateKey(keystore.Service, "none", keystore.Overlap); errcode.CodeOf(err) != errcode.Conflict {
		t.Errorf("rotate without a key: %v", err)
	}
	one, _ := s.Organization()
	two, _ := other.Organization()
	if one == "" || one != two {
		t.Errorf("organizations %q and %q", one, two)
	}
}

func TestStore_OldKeyIsValidForAnHour(t *testing.T) {
	s, now := keystore.Open(t.TempDir()), time.Now()
	keystore.SetNow(s, func() time.Time { return now })
	old := createKey(t, s, "joke")
	now = now.Add(time.Minute)
	next, err := s.RotateKey(keystore.Service, "joke", keystore.Overlap)
	if err != nil {
		t.Fatal(err)
	}
	if got := valid(t, s, "joke"); len(got) != 2 || got[0] != next.ID || got[1] != old.ID {
		t.Errorf("after the rotation %v are valid, want %s and %s", got, next.ID, old.ID)
	}
	now = now.Add(keystore.Overlap - time.Second)
	if got := valid(t, s, "joke"); len(got) != 2 {
		t.Errorf("before the end of the hour %v are valid", got)
	}
	now = now.Add(2 * time.Second)
	if got := valid(t, s, "joke"); len(got) != 1 || got[0] != next.ID {
		t.Errorf("after the hour %v are valid", got)
	}
	list, err := s.ListKeys()
	if err != nil || len(list) != 1 || list[0].ID != next.ID || list[0].Secret != "" {
		t.Errorf("listed are %v, %v", list, err)
	}
}

func TestStore_OnlyTheOwnerReadsTheFile(t *testing.T) {
	dir := t.TempDir()
	createKey(t, keystore.Open(dir), "joke")
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("the folder has %v, %v", entries, err)
	}
	info, err := os.Stat(filepath.Join(dir, keystore.FileName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestStore_DamagedFileHasNoKeys(t *testing.T) {
	const key = `{"keys":[{"id":"1","use":"service","name":"joke","secret":""}]}`
	for _, text := range []string{"", "{", `{"keys": 1}`, strings.Repeat("x", 5<<20), key, strings.Replace(key, `"secret":""`, `"secret":"short"`, 1)} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, keystore.FileName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := keystore.Open(dir)
		if _, ok, err := s.NewestKey(keystore.Service, "joke"); ok || errcode.CodeOf(err) != errcode.InvalidConfig {
			t.Errorf("%.20q: %t, %v", text, ok, err)
		}
		if _, err := s.CreateKey(keystore.Service, "joke"); err == nil {
			t.Errorf("%.20q: the file is replaced", text)
		}
		if s.HasSecret(keystore.Service, "joke", "") || s.HasSecret(keystore.Service, "joke", "short") {
			t.Errorf("%.20q: a secret is accepted", text)
		}
	}
}

func TestStore_AnotherProcessChangesTheFile(t *testing.T) {
	dir := t.TempDir()
	lock := filepath.Join(dir, keystore.FileName+".lock")
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := keystore.Open(dir)
	if _, err := s.CreateKey(keystore.Service, "joke"); errcode.CodeOf(err) != errcode.Conflict {
		t.Errorf("with a lock: %v", err)
	}
	keystore.SetNow(s, func() time.Time { return time.Now().Add(time.Hour) })
	createKey(t, s, "joke") // the process has ended
	if _, err := os.Stat(lock); !os.IsNotExist(err) {
		t.Errorf("the lock stays: %v", err)
	}
}

// A key that is rotated again and again would make the tokens of all calls longer than services
// read.
func TestRotateKey_FewKeysAreValid(t *testing.T) {
	s := keystore.Open(t.TempDir())
	old := createKey(t, s, "joke")
	var err error
	count := 0
	for ; err == nil; count++ {
		_, err = s.RotateKey(keystore.Service, "joke", keystore.Overlap)
	}
	if got := valid(t, s, "joke"); errcode.CodeOf(err) != errcode.Conflict || len(got) != 8 || count != 8 {
		t.Errorf("after %d rotations %d keys are valid: %v", count, len(got), err)
	}
	next, err := s.RotateKey(keystore.Service, "joke", 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := valid(t, s, "joke"); len(got) != 1 || got[0] != next.ID || s.HasSecret(keystore.Service, "joke", old.Secret) {
		t.Errorf("after a rotation without an overlap %v are valid", got)
	}
}

// Keys that another process changes count within a second, and the first one at once.
func TestListSecrets_FollowsTheFile(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	s, other := keystore.Open(dir), keystore.Open(dir)
	keystore.SetNow(s, func() time.Time { return now })
	secrets := func() (list []string) {
		list, err := s.RecentSecrets(keystore.Service, "joke")
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if got := secrets(); len(got) > 0 {
		t.Fatalf("without a key: %q", got)
	}
	first := createKey(t, other, "joke")
	if got := secrets(); len(got) != 1 || got[0] != first.Secret {
		t.Errorf("the first key: %q", got)
	}
	next, err := other.RotateKey(keystore.Service, "joke", keystore.Overlap)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Second)
	if got := secrets(); len(got) != 2 || got[0] != next.Secret || got[1] != first.Secret {
		t.Errorf("a second after the rotation: %q", got)
	}
	if err := os.Remove(filepath.Join(dir, keystore.FileName)); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Second)
	if got := secrets(); len(got) > 0 {
		t.Errorf("without the file: %q", got)
	}
}

// A call waits for nothing but a file.
func TestStore_FileThatIsNone(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, keystore.FileName), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := keystore.Open(dir).RecentSecrets(keystore.Service, "joke"); errcode.CodeOf(err) != errcode.InvalidConfig {
		t.Errorf("got %v", err)
	}
}
