package builtin

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/internal/js/jsworker"
	"github.com/rolecall/rolecall/model/script"
)

// A program that does not call sandbox.Enter has no launcher.
func TestScriptStarter_WithoutLauncherRunsInProcess(t *testing.T) {
	var log bytes.Buffer
	pool := script.NewWorkerPool(NewScriptStarter(nil, slog.New(slog.NewTextHandler(&log, nil))))
	defer pool.Close()
	for range 2 {
		m, err := script.Config{Workers: pool}.New("agents.js", []byte(`role("root", function* () {})`))
		if err != nil {
			t.Fatal(err)
		}
		m.Close()
	}
	if text := log.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "run in this process") || !strings.Contains(text, "sandbox.Enter") {
		t.Errorf("got %q", text)
	}
}

func TestScriptStarter_UsesSandbox(t *testing.T) {
	requireSandbox(t)
	var log bytes.Buffer
	conn, err := NewScriptStarter(launcher, slog.New(slog.NewTextHandler(&log, nil)))()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, ok := conn.(*sandbox.Process); !ok || log.Len() > 0 {
		t.Errorf("got %T with log %q", conn, log.String())
	}
}

// fakeConn is a connection to nothing, started in a way.
type fakeConn struct {
	jsworker.Conn
	way string
}

// Only a missing feature leads to a worse way, and only before a better one has worked.
func TestScriptStarter_NeverGetsWorse(t *testing.T) {
	missing, broken := &sandbox.UnavailableError{Missing: "namespaces"}, errors.New("no process")
	tests := []struct {
		name     string
		sandbox  []error // of each start; nil works
		plain    []error
		want     string // the ways of all starts, "-" for an error
		warnings int
	}{
		{"sandbox works", []error{nil, nil}, nil, "sandbox sandbox", 0},
		{"sandbox is missing", []error{missing, missing}, []error{nil, nil}, "plain plain", 1},
		{"sandbox is missing later", []error{nil, missing}, []error{nil}, "sandbox -", 0},
		{"sandbox comes back", []error{missing, nil, missing}, []error{nil, nil}, "plain sandbox -", 1},
		{"sandbox fails otherwise", []error{broken}, []error{nil}, "-", 0},
		{"no process can start", []error{missing, missing}, []error{missing, missing}, "here here", 1},
		{"no process can start later", []error{missing, missing}, []error{nil, missing}, "plain -", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			way := func(name string, errs []error) func() (jsworker.Conn, error) {
				return func() (jsworker.Conn, error) {
					err := errs[0]
					errs = errs[1:]
					return fakeConn{way: name}, err
				}
			}
			var log bytes.Buffer
			s := newScriptStarter(slog.New(slog.NewTextHandler(&log, nil)),
				startingWay{start: way("sandbox", tt.sandbox)}, startingWay{way("plain", tt.plain), "plain"}, startingWay{way("here", []error{nil, nil}), "here"})
			var got []string
			for range len(strings.Fields(tt.want)) {
				conn, err := s.start()
				if err != nil {
					got = append(got, "-")
					continue
				}
				got = append(got, conn.(fakeConn).way)
			}
			if ways := strings.Join(got, " "); ways != tt.want || strings.Count(log.String(), "level=WARN") != tt.warnings {
				t.Errorf("got %s, want %s; log %q", ways, tt.want, log.String())
			}
		})
	}
}
