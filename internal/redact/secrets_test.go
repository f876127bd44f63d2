package redact_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/redact"
)

func TestValues_FindsPartsShownAlone(t *testing.T) {
	const secret = "s3cret-canary"
	for name, value := range map[string]string{
		"plain": secret, "bearer": "Bearer " + secret, "basic": "Basic " + base64.StdEncoding.EncodeToString([]byte("ann:"+secret)),
		"address": "postgres://ann:" + secret + "@db/shop", "query": "https://host/mcp?v=2&token=" + secret,
		"connection string": "host=db user=ann password=" + secret + " dbname=x", "other connection string": "Server=db;Pwd=" + secret + ";x=y",
		"lines": "-----BEGIN KEY-----\n" + secret + "\n-----END KEY-----\n",
	} {
		if !slices.Contains(redact.ValueSecrets(value), secret) {
			t.Errorf("%s: got %q", name, redact.ValueSecrets(value))
		}
	}
}

func TestValues_LeavesOutPublicValues(t *testing.T) {
	file := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := redact.ValueSecrets(file, "https://api.example.com", "http://127.0.0.1:8080/", "2024-06-01"); got != nil {
		t.Errorf("got %q", got)
	}
	if got := redact.ValueSecrets(file+"/missing", "https://hooks.example.com/T0/secret"); len(got) != 2 {
		t.Errorf("got %q, want both", got)
	}
}

func TestHeaders_LeavesOutDescriptions(t *testing.T) {
	got := redact.HeaderSecrets(map[string]string{
		"accept": "application/json", "Content-Type": "application/json", "User-Agent": "rolecall-bot/1",
		"x-api-key": "sk-0123456789", "Cookie": "a=cookie-one; b=cookie-two", "Authorization": "Bearer tk-0123456789",
	})
	for _, want := range []string{"sk-0123456789", "cookie-one", "cookie-two", "tk-0123456789"} {
		if !slices.Contains(got, want) {
			t.Errorf("got %q, without %s", got, want)
		}
	}
	if strings.Contains(fmt.Sprint(got), "json") || strings.Contains(fmt.Sprint(got), "bot") {
		t.Errorf("got %q", got)
	}
}

func TestRedactError_KeepsWrappedErrors(t *testing.T) {
	r := redact.New("sk-0123456789")
	err := r.RedactError(fmt.Errorf("key sk-0123456789: %w", fs.ErrNotExist))
	if err.Error() != "key ***: file does not exist" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if r.RedactError(nil) != nil || r.RedactError(fs.ErrExist) != fs.ErrExist {
		t.Error("an error without a secret has changed")
	}
}
