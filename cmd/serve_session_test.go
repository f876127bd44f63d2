package cmd

import (
	"strings"
	"testing"
)

// serveSession serves a configuration on the socket of a data directory until the test ends.
func serveSession(t *testing.T, file, data string) *session {
	t.Helper()
	c := &common{launcher: launcher, data: data, files: []string{file}, in: strings.NewReader(""), out: t.Output(), err: t.Output(), env: func(string) (string, bool) { return "", false }}
	s, err := openSession(c, &terminal{out: t.Output()}, sessionOptions{serve: true, fatal: func(error) {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	cfg, err := loadConfig(c)
	if err == nil {
		err = s.ApplyConfig(t.Context(), cfg, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.MarkReady()
	stop, err := s.ServeSocket()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}
