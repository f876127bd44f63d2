package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/test/short"
)

// Every line of the log of serve has a time, in both formats, whatever is logged.
func TestLogFormat_EveryLineHasTime(t *testing.T) {
	stamped := regexp.MustCompile(`^time=(\S+) `)
	for _, s := range short.SampleList(t, 100, hostileStrings()) {
		for _, name := range []string{"text", "json"} {
			f, err := newLogFormat(name, "debug")
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			c := &common{logs: f}
			fmt.Fprintf(f.notices(&out), "serving %s\n  and more\n", s)
			c.logger(&out, 0).Warn("call denied", "tool", s)
			for line := range strings.Lines(out.String()) {
				at := ""
				if name == "json" {
					var record struct{ Time, Msg, Level string }
					if err := json.Unmarshal([]byte(line), &record); err != nil || record.Msg == "" || record.Level == "" {
						t.Errorf("%q: %v", line, err)
					}
					at = record.Time
				} else if m := stamped.FindStringSubmatch(line); m != nil {
					at = m[1]
				}
				if _, err := time.Parse(time.RFC3339, at); err != nil {
					t.Errorf("%s: the line %q has no time", name, line)
				}
				wantPrintable(t, s, strings.TrimSuffix(line, "\n"))
			}
		}
	}
}

func TestLogFormat_Level(t *testing.T) {
	for level, want := range map[string]int{"debug": 4, "info": 3, "": 2, "warn": 2, "WARN": 2, "error": 1} {
		f, err := newLogFormat("text", level)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		log := (&common{logs: f}).logger(&out, 0)
		log.Debug("x")
		log.Info("x")
		log.Warn("x")
		log.Error("x")
		if got := strings.Count(out.String(), "\n"); got != want {
			t.Errorf("%q: %d lines, want %d", level, got, want)
		}
	}
	for _, c := range [][2]string{{"", ""}, {"xml", ""}, {"JSON", ""}, {"text", "loud"}, {"text", "warn+1"}, {"text", "\x1b[31m"}} {
		if _, err := newLogFormat(c[0], c[1]); exitStatus(err) != 2 {
			t.Errorf("%q: %v", c, err)
		}
	}
	if out := new(bytes.Buffer); (logFormat{}).notices(out) != out {
		t.Error("notices of other commands are changed")
	}
}
