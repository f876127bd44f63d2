package cmd

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
)

func TestTable_AlignsColumns(t *testing.T) {
	var b strings.Builder
	rows := table{{"NAME", "ID"}, {"größe", "1"}, {"a\x1b[2Jb", ""}, {"x\ny", "long id"}}
	if err := rows.print(&b); err != nil {
		t.Fatal(err)
	}
	want := "NAME    ID\ngröße   1\na\ufffd[2Jb\nx y     long id\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFields_IndentsFurtherLines(t *testing.T) {
	var b strings.Builder
	err := fields{{"name", "a"}, {"model", ""}, {"prompt", "one\ntwo\x07\n"}}.print(&b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("name    a\nprompt  one\n        two\ufffd\n", b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPrintJSON_EscapesTerminalCharacters(t *testing.T) {
	in := map[string]string{"name": "a\x1b[31m\u009b2J\x7f\u202eb\U000e0041 ä <&>"}
	var b strings.Builder
	if err := printJSON(&b, in); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.String() {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%U is not escaped", r)
		}
	}
	var out map[string]string
	if err := json.Unmarshal([]byte(b.String()), &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, out); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
}

func TestForTerminal_RejectsBinary(t *testing.T) {
	got, err := forTerminal([]byte("one\ttwo\x1b]0;title\x07\nthree"))
	if want := "one two\ufffd]0;title\ufffd\nthree\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if _, err := forTerminal([]byte{0xff, 0xfe}); err == nil {
		t.Error("binary content was written to a terminal")
	}
}

func TestTreeOf_ListsEveryAgentOnce(t *testing.T) {
	agents := []client.Agent{
		{ID: "1", Role: "root", Task: "t", Status: "waiting", State: "undefined"},
		{ID: "2", Name: "lead-1", Role: "lead", Task: "t", Parent: "1", Status: "calling", State: "undefined"},
		{ID: "3", Role: "clerk", Task: "t", Parent: "1", Status: "waiting", State: "undefined"},
		{ID: "4", Role: "hand", Task: "t", Parent: "2", Status: "waiting", State: "open"},
		{ID: "5", Role: "lost", Task: "t", Parent: "gone", Status: "waiting", State: "undefined"},
	}
	var b strings.Builder
	if err := treeOf(agents).print(&b); err != nil {
		t.Fatal(err)
	}
	want := `├─ root        waiting  undefined  1
│  ├─ lead-1   calling  undefined  2
│  │  └─ hand  waiting  open       4
│  └─ clerk    waiting  undefined  3
└─ lost        waiting  undefined  5
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestVerdictText_BeginsWithDecision(t *testing.T) {
	denied := client.Verdict{Code: errcode.ToolNotAvailable, Reason: "tool x is not available to this role", Tool: "x", Group: "g", Epoch: 7, Rule: "the toolGroups of role a"}
	want := "denied: tool_not_available: tool x is not available to this role\ngroup: g\nepoch: 7\nrule: the toolGroups of role a\n"
	if diff := cmp.Diff(want, verdictText(verdictView{Verdict: denied})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := verdictText(verdictView{Verdict: client.Verdict{Allowed: true, Rule: "r"}}); !strings.HasPrefix(got, "allowed\n") {
		t.Errorf("got %q", got)
	}
}

func TestGroupOptions_Set(t *testing.T) {
	tests := []struct {
		o    groupOptions
		want string // "unset" for no flag, "" for a usage error
	}{
		{groupOptions{}, "unset"},
		{groupOptions{ids: []string{"a", "b"}}, "a,b"},
		{groupOptions{ids: []string{"*"}}, "*"},
		{groupOptions{all: true}, "*"},
		{groupOptions{none: true}, "-"},
		{groupOptions{ids: []string{"a", ""}}, ""},
		{groupOptions{all: true, none: true}, ""},
		{groupOptions{ids: []string{"a"}, all: true}, ""},
	}
	for _, test := range tests {
		test.o.flag = "use"
		test.o.given = func() bool { return test.o.ids != nil }
		got, err := test.o.set()
		_, wrong := errors.AsType[usageError](err)
		text := "unset"
		if got != nil {
			text = got.String()
		}
		if wrong != (test.want == "") || !wrong && text != test.want {
			t.Errorf("%+v: got %s, %v, want %s", test.o.ids, text, err, test.want)
		}
	}
}
