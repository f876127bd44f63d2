package keystore_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/keystore"
)

// sealed seals a text for a purpose and a context.
func sealed(t *testing.T, s *keystore.Store, purpose, plain string, context ...string) []byte {
	t.Helper()
	text, err := s.SealText(purpose, []byte(plain), context...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestStore_SealedTextOpensForItsContextOnly(t *testing.T) {
	dir := t.TempDir()
	s := keystore.Open(dir)
	text := sealed(t, s, "logins", "token-canary", "web", "ann")
	if again := sealed(t, s, "logins", "token-canary", "web", "ann"); bytes.Equal(text, again) || bytes.Contains(text, []byte("canary")) {
		t.Errorf("sealed %q and %q", text, again)
	}
	if plain, err := keystore.Open(dir).OpenText("logins", text, "web", "ann"); err != nil || string(plain) != "token-canary" {
		t.Errorf("got %q, %v", plain, err)
	}
	sealed(t, s, "others", "x")
	for name, context := range map[string][]string{
		"another person": {"web", "bob"}, "another server": {"we", "bann"}, "joined": {"webann"}, "less": {"web"}, "more": {"web", "ann", ""}, "none": nil,
	} {
		if plain, err := s.OpenText("logins", text, context...); errcode.CodeOf(err) != errcode.Conflict || plain != nil {
			t.Errorf("%s opens it: %q, %v", name, plain, err)
		}
	}
	if _, err := s.OpenText("others", text, "web", "ann"); errcode.CodeOf(err) != errcode.Conflict {
		t.Errorf("another purpose opens it: %v", err)
	}
	for i := range text {
		changed := bytes.Clone(text)
		changed[i] ^= 1
		if _, err := s.OpenText("logins", changed, "web", "ann"); err == nil {
			t.Errorf("opened with byte %d changed", i)
		}
		if _, err := s.OpenText("logins", text[:i], "web", "ann"); err == nil {
			t.Errorf("opened the first %d bytes", i)
		}
	}
}

// The keys stand in one file. Copied to another organization, a key opens nothing there; without
// the file nothing opens.
func TestStore_SealedTextIsOfOneOrganization(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	s := keystore.Open(dir)
	text := sealed(t, s, "logins", "secret", "web")
	id, err := s.Organization()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(dir, keystore.FileName))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keystore.Open(other).OpenText("logins", text, "web"); errcode.CodeOf(err) != errcode.Conflict {
		t.Errorf("without keys: %v", err)
	}
	moved := strings.Replace(string(file), id, "00000000-0000-4000-8000-000000000000", 1)
	if err := os.WriteFile(filepath.Join(other, keystore.FileName), []byte(moved), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := keystore.Open(other).OpenText("logins", text, "web"); errcode.CodeOf(err) != errcode.Conflict {
		t.Errorf("in another organization: %v", err)
	}
}

// Keys that seal are no keys of services.
func TestStore_SealKeysSignNothing(t *testing.T) {
	s := keystore.Open(t.TempDir())
	sealed(t, s, "joke", "x")
	if ids := valid(t, s, "joke"); len(ids) != 0 {
		t.Errorf("the service joke has the keys %v", ids)
	}
}
