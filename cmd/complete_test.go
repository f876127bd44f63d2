package cmd

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// A shell is offered at most 200 names, and none that controls the terminal.
func TestMatching_BoundsNames(t *testing.T) {
	names := []string{"red\x1b[31m", "right\u202eleft", "", "two\nlines", "role-a\tabout"}
	for i := range 300 {
		names = append(names, fmt.Sprint("role-", i))
	}
	got := matching(slices.Values(names), "r")
	if len(got) != maxCompletions || got[0] != "role-a\tabout" {
		t.Errorf("%d names, the first is %q", len(got), got[0])
	}
}

// Shells write what all names have in common into the line as it is, and run it when they are
// asked again. So names that a shell reads as more than a word are not offered.
func TestMatching_LeavesOutShellSyntax(t *testing.T) {
	names := []string{"a$(id)", "a`id`", "a;id", "a|id", "a&id", "a>x", "a<x", "a'b", `a"b`, `a\b`, "a b", "a*", "a?", "a[b]", "a{b,c}", "a!1", "a#b", "a(b)", "a=b\tabout", "~a", "=ls", "-rf"}
	safe := []string{"a", "reader-2.b_c\ta $(id)", "MCP/read", "fs:list", "résumé", "界", "ann@01a2", "+x"}
	if got := matching(slices.Values(append(names, safe...)), ""); !slices.Equal(got, append([]string{"a=b\tabout"}, safe...)) {
		t.Errorf("offered: %q", got)
	}
}

// Roles of several callers may have one name. It is offered once.
func TestDistinct_OffersNameOnce(t *testing.T) {
	if got := distinct([]string{"b", "a\t$(id) 2", "ab", "a\t$(id) 1", "a"}); !slices.Equal(got, []string{"a", "ab", "b"}) {
		t.Errorf("offered: %q", got)
	}
}

// A process that does not answer is given up, without a word.
func TestComplete_GivesUp(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	var out, log bytes.Buffer
	env := func(name string) (string, bool) { return "http://" + silent.Addr().String(), name == urlVariable }
	start := time.Now()
	status := run(t.Context(), &common{launcher: launcher, out: &out, err: &log, env: env, answerTimeout: 50 * time.Millisecond}, []string{"__complete", "role", "show", ""})
	if took := time.Since(start); status != 0 || took > 8*completeTimeout || out.String() != ":4\n" || strings.Contains(log.String(), "rolecall:") {
		t.Errorf("after %v status %d, %q, %q", took, status, &out, &log)
	}
}

// Every command and flag that the tables name exists.
func TestCompletions_NameCommandsAndFlags(t *testing.T) {
	root := newRootCommand(&common{})
	for name := range argumentNames {
		if cmd, _, err := root.Find(strings.Fields(name)); err != nil || commandName(cmd) != name || cmd.ValidArgsFunction == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name := range flagNames {
		words := strings.Fields(name)
		if len(words) == 1 {
			continue
		}
		cmd, _, err := root.Find(words[:len(words)-1])
		if err != nil || cmd.Flags().Lookup(words[len(words)-1]) == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
