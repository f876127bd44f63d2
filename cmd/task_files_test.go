package cmd

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/org"
)

// seeingServer is a model that answers with what it was shown: the images, and the texts of
// files.
func seeingServer(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		answer := fmt.Sprintf("%d images, table %v", strings.Count(string(body), "data:image/png;base64,"+onePixel), strings.Contains(string(body), "north,7"))
		streamed(w, fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":%q},"finish_reason":"stop"}]}`, answer))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

// Files reach the model in this process and in one that serves.
func TestRun_ShowsFiles(t *testing.T) {
	dir := t.TempDir()
	image, table := filepath.Join(dir, "a.png"), filepath.Join(dir, "sales.csv")
	pixel, err := base64.StdEncoding.DecodeString(onePixel)
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string][]byte{image: pixel, table: []byte("north,7\n")} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, data := chatConfig(t, seeingServer(t)), filepath.Join(dir, "data")
	for _, served := range []bool{false, true} {
		if served {
			serveSession(t, file, data)
		}
		for _, role := range []string{"root", "reader"} {
			status, stdout, stderr := runIn(t, nil, "", "run", "-f", file, "--data", data, "--role", role, "--image", image, "--attach", table, "look")
			if status != 0 || stdout != "1 images, table true\n" {
				t.Errorf("served %v, role %q: status %d, %q\n%s", served, role, status, stdout, stderr)
			}
		}
	}
}

func TestRun_RejectsFiles(t *testing.T) {
	dir := t.TempDir()
	text, empty, large := filepath.Join(dir, "a.txt"), filepath.Join(dir, "empty"), filepath.Join(dir, "large")
	for path, size := range map[string]int{text: 5, empty: 0, large: org.MaxTaskFileBytes + 1} {
		if err := os.WriteFile(path, []byte(strings.Repeat("x", size)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"a.txt is not a PNG, JPEG, GIF or WebP image; use --attach", []string{"--image", text}},
		{"--attach: " + dir + "/none: no such file", []string{"--attach", dir + "/none"}},
		{"is not a file", []string{"--attach", dir}},
		{`"empty" is empty`, []string{"--attach", empty}},
		{`"a.txt" is given twice`, []string{"--attach", text, "--attach", text}},
		{"the files of a task have at most 5242880 together", []string{"--attach", large}},
		{"--resume", []string{"--resume", "last", "--attach", text}},
	} {
		args := append([]string{"run", "--data", filepath.Join(dir, "data"), "--role", "r"}, c.args...)
		if c.args[0] != "--resume" {
			args = append(args, "look")
		}
		if status, stdout, stderr := runIn(t, nil, "", args...); status != 2 || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: status %d, %s", c.args, status, stderr)
		}
	}
}
