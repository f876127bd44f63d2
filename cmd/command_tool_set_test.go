package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tool set changes one file of a configuration that stays valid, and no other.
func TestToolSet_ChangesAValidConfiguration(t *testing.T) {
	dir := t.TempDir()
	tools, servers := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")
	const toolText = "# sources\n{kind: source, name: db, type: sqlite, database: ':memory:'}\n---\nkind: tool\nname: search # the name\ntype: sqlite-sql\nsource: db\ndescription: d\nstatement: SELECT 1\n"
	const serverText = "kind: module\nname: stats\ntype: textstats\n"
	for path, text := range map[string]string{tools: toolText, servers: serverText} {
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	read := func() string {
		var all string
		for _, path := range []string{tools, servers} {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all += string(data) + "=====\n"
		}
		return all
	}
	text := toolText + "=====\n" + serverText + "=====\n"
	for _, step := range []struct {
		args           []string
		status         int
		stderr         string
		replaced, with string
	}{
		{[]string{"search", "--group", "a,b", "--state", "analysis", "--applicable-states", "undefined"}, 0, "a.yaml is changed\n", "statement: SELECT 1\n", "statement: SELECT 1\ngroup: [a, b]\nstate: analysis\navailable_in_states: [undefined]\n"},
		{[]string{"search", "--group", "none", "--state", "none"}, 0, "a.yaml is changed\n", "group: [a, b]\nstate: analysis\n", "group: []\nstate: ''\n"},
		{[]string{"search", "--group", "none"}, 0, "says so already", "", ""},
		{[]string{"stats/count_words", "--applicable-states", "*", "--effect", "mutating"}, 0, "b.yaml is changed\n", "type: textstats\n", "type: textstats\n---\nkind: tool\nof: stats/count_words\navailable_in_states: ['*']\neffect: mutating\n"},
		{[]string{"stats/count_words", "--group", "counting"}, 0, "b.yaml is changed\n", "effect: mutating\n", "effect: mutating\ngroup: [counting]\n"},
		{[]string{"stats/count_words", "--flags", "outside,private"}, 0, "b.yaml is changed\n", "group: [counting]\n", "group: [counting]\nflags: [private, outside]\n"},
		{[]string{"stats/count_words", "--flags", "none"}, 0, "b.yaml is changed\n", "flags: [private, outside]\n", "flags: []\n"},
		{[]string{"stats/count_words", "--flags", "secret"}, 2, `--flags: "secret" is unknown; there are untrusted, private, outside`, "", ""},
		{[]string{"stats/nothing", "--group", "a"}, 2, `b.yaml is not changed, because the configuration would be invalid: `, "", ""},
		{[]string{"search", "--group", "workspace"}, 2, "a built-in group, which declared tools cannot join", "", ""},
		{[]string{"search", "--effect", "none"}, 2, `effect: "none" is unknown`, "", ""},
		{[]string{"gone", "--group", "a"}, 2, `no document of kind tool declares "gone"`, "", ""},
		{[]string{"search"}, 2, "tool set changes nothing", "", ""},
	} {
		status, stdout, stderr := runIn(t, nil, "", append([]string{"tool", "set", "-f", dir}, step.args...)...)
		if step.replaced != "" {
			text = strings.Replace(text, step.replaced, step.with, 1)
		}
		if status != step.status || !strings.Contains(stderr, step.stderr) || stdout != "" {
			t.Errorf("%v: status %d, want %d\n%s%s", step.args, status, step.status, stdout, stderr)
		}
		if got := read(); got != text {
			t.Fatalf("%v: the files are\n%s\nwant\n%s", step.args, got, text)
		}
	}
	if info, err := os.Stat(tools); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if names, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(names) != 2 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}
