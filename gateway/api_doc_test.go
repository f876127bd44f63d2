package gateway_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/model"
)

const apiDoc = "../docs/api.md"

// Each request in docs/api.md is sent to an organization, and its answer has the shape that
// the document shows. With -update the document gets the answers whose shapes differ.
func TestAPIDoc_ExamplesAnswerAsShown(t *testing.T) {
	text, err := os.ReadFile(apiDoc)
	if err != nil {
		t.Fatal(err)
	}
	runner := newDocRunner(t)
	examples := regexp.MustCompile("(?s)```console\n.*?```").ReplaceAllStringFunc(string(text), runner.block)
	if runner.ran < 15 {
		t.Errorf("only %d examples ran", runner.ran)
	}
	if flag.Lookup("update").Value.String() != "true" || examples == string(text) {
		return
	}
	if err := os.WriteFile(apiDoc, []byte(examples), 0o644); err != nil {
		t.Fatal(err)
	}
}

// docRunner sends the requests of a document. The variables of the shell are those that the
// document explains.
type docRunner struct {
	t         *testing.T
	api       *gatewaytest.Fixture
	variables map[string]string
	begin     func() // lets the models of agents answer
	ran       int
}

// newDocRunner returns a docRunner for an organization with the role reader, a token of it and
// one of the operator.
func newDocRunner(t *testing.T) *docRunner {
	started := make(chan struct{})
	f := newFixture(t, func(r model.Request) model.Answer { <-started; return gatewaytest.TeamModel(r) })
	reader := f.AddRole(t, "reader", "workspace")
	operatorToken, operator := gatewaytest.NewToken("ops", auth.Token{Scope: auth.ScopeOperator})
	readerToken, ofReader := gatewaytest.NewToken("reader", auth.Token{Scope: auth.ScopeRole, Role: reader.ID})
	tokens := gatewaytest.NewTokens(t, f, operator, ofReader)
	begin := sync.OnceFunc(func() { close(started) })
	t.Cleanup(begin)
	return &docRunner{t: t, api: f.WithAuthenticator(t, tokens.Authenticate), begin: begin, variables: map[string]string{
		"URL": "", "TOKEN": operatorToken, "READER": readerToken,
	}}
}

// block runs the commands of a block and returns it with their answers.
func (d *docRunner) block(text string) string {
	var out strings.Builder
	out.WriteString("```console\n")
	body := strings.TrimSuffix(strings.TrimPrefix(text, "```console\n"), "```")
	for part := range strings.SplitSeq(strings.TrimPrefix(body, "$ "), "\n$ ") {
		command, shown := cutCommand(part)
		answer := d.run(command)
		if problem := compareAnswers(strings.TrimSpace(shown), answer); problem != "" {
			if flag.Lookup("update").Value.String() != "true" {
				d.t.Errorf("%s: %s\nanswer: %s", command, problem, answer)
			}
			shown = showAnswer(answer)
		}
		fmt.Fprintf(&out, "$ %s\n%s\n", command, strings.TrimSpace(shown))
	}
	return out.String() + "```"
}

// cutCommand separates a command, whose lines end in a backslash, from its answer.
func cutCommand(text string) (command, answer string) {
	lines := strings.Split(text, "\n")
	n := 1
	for n < len(lines) && strings.HasSuffix(lines[n-1], `\`) {
		n++
	}
	return strings.Join(lines[:n], "\n"), strings.Join(lines[n:], "\n")
}

// argument matches an argument of a command, quoted or not.
var argument = regexp.MustCompile(`'([^']*)'|"((?:[^"\\]|\\.)*)"|(\S+)`)

// run sends the request of a command of curl and returns the answer.
func (d *docRunner) run(command string) string {
	d.t.Helper()
	var method, target, body string
	header := http.Header{}
	args := argument.FindAllStringSubmatch(strings.ReplaceAll(command, "\\\n", " "), -1)
	for i := 1; i < len(args); i++ {
		value := func() string { i++; return d.text(args[i]) }
		switch arg := d.text(args[i]); arg {
		case "-X":
			method = value()
		case "-d":
			body = value()
		case "-H":
			name, text, _ := strings.Cut(value(), ": ")
			header.Set(name, text)
		case "-N":
		default:
			target = arg
		}
	}
	if args[0][0] != "curl" || !strings.HasPrefix(target, "/") {
		d.t.Fatalf("not a request: %s", command)
	}
	if method == "" && body != "" {
		method = http.MethodPost
	} else if method == "" {
		method = http.MethodGet
	}
	d.ran++
	answer := d.api.SendRequest(d.t, method+" "+target, body, header).Body.String()
	d.note(method+" "+target, answer)
	return strings.TrimSpace(answer)
}

// text returns an argument with variables replaced, except in single quotes.
func (d *docRunner) text(arg []string) string {
	if arg[1] != "" {
		return arg[1]
	}
	text := strings.ReplaceAll(arg[2]+arg[3], `\"`, `"`)
	return os.Expand(text, func(name string) string {
		value, ok := d.variables[name]
		if !ok {
			d.t.Errorf("the variable %s is not explained", name)
		}
		return value
	})
}

// note sets the variables for what an answer has.
func (d *docRunner) note(request, answer string) {
	if id := gjson.Get(answer, "id").Str; request == "POST /api/v1/tasks" && id != "" {
		d.begin() // its answer does not depend on how fast the task is
		d.variables["TASK"], d.variables["AGENT"] = id, gjson.Get(answer, "agent").Str
	}
	if next := gjson.Get(answer, "next").Str; next != "" {
		d.variables["NEXT"] = next
	}
}

// compareAnswers describes how the shape of an answer differs from the shown one; "" if it
// does not. A stream is compared line by line.
func compareAnswers(shown, answer string) string {
	if gjson.Valid(answer) {
		if !gjson.Valid(shown) {
			return "the shown answer is not JSON"
		}
		return compareShapes("answer", gjson.Parse(shown), gjson.Parse(answer))
	}
	want, got := strings.Split(shown, "\n"), strings.Split(answer, "\n")
	for i, line := range want {
		if line == "…" {
			return ""
		}
		if i >= len(got) {
			return fmt.Sprintf("it has %d lines, %d are shown", len(got), len(want))
		}
		shownField, wantText, _ := strings.Cut(line, ": ")
		gotField, gotText, _ := strings.Cut(got[i], ": ")
		if strings.HasPrefix(line, "{") {
			shownField, wantText, gotField, gotText = "", line, "", got[i]
		}
		if shownField != gotField {
			return fmt.Sprintf("line %d begins with %q, %q is shown", i+1, gotField, shownField)
		}
		if problem := compareShapes(fmt.Sprintf("line %d", i+1), gjson.Parse(wantText), gjson.Parse(gotText)); problem != "" {
			return problem
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("it has %d lines, %d are shown", len(got), len(want))
	}
	return ""
}

// compareShapes describes how the type of a value, or of a part of it, differs. A shown list
// that ends in "…" may have further items.
func compareShapes(at string, shown, got gjson.Result) string {
	switch {
	case shown.IsObject() && got.IsObject():
		return compareObjects(at, shown.Map(), got.Map())
	case shown.IsArray() && got.IsArray():
		return compareLists(at, shown.Array(), got.Array())
	case shown.Type != got.Type && !(shown.IsBool() && got.IsBool()):
		return fmt.Sprintf("%s is %s, %s is shown", at, got.Type, shown.Type)
	}
	return ""
}

func compareObjects(at string, shown, got map[string]gjson.Result) string {
	for name, value := range got {
		if _, ok := shown[name]; !ok {
			return fmt.Sprintf("%s has %s, which is not shown", at, name)
		}
		if problem := compareShapes(at+"."+name, shown[name], value); problem != "" {
			return problem
		}
	}
	for name := range shown {
		if _, ok := got[name]; !ok {
			return fmt.Sprintf("%s has no %s, which is shown", at, name)
		}
	}
	return ""
}

func compareLists(at string, shown, got []gjson.Result) string {
	n := len(shown)
	if open := n > 0 && shown[n-1].Str == "…"; open {
		n--
	} else if n != len(got) {
		return fmt.Sprintf("%s has %d items, %d are shown", at, len(got), n)
	}
	for i := range min(n, len(got)) {
		if problem := compareShapes(fmt.Sprintf("%s[%d]", at, i), shown[i], got[i]); problem != "" {
			return problem
		}
	}
	return ""
}

// showAnswer returns an answer for the document: short lists and texts.
func showAnswer(answer string) string {
	if gjson.Valid(answer) {
		return shortJSON(answer, "  ")
	}
	lines := strings.Split(answer, "\n")
	for i, line := range lines {
		if field, data, ok := strings.Cut(line, "data: "); ok && field == "" {
			lines[i] = "data: " + shortJSON(data, "")
		} else if strings.HasPrefix(line, "{") {
			lines[i] = shortJSON(line, "")
		}
	}
	if len(lines) > 6 {
		lines = append(lines[:6:6], "…")
	}
	return strings.Join(lines, "\n")
}

// longValue matches texts and lists of texts that are too long for a document.
var (
	longText = regexp.MustCompile(`"((?:[^"\\]|\\.){90})(?:[^"\\]|\\.)+"`)
	longList = regexp.MustCompile(`\[("[^"]*","[^"]*"),[^\[\]{}]*\]`)
)

// shortJSON returns JSON with long texts and lists cut. The order of fields is kept.
func shortJSON(text, indent string) string {
	text = longList.ReplaceAllString(text, `[$1,"…"]`)
	text = longText.ReplaceAllString(text, `"$1…"`)
	if indent == "" {
		return text
	}
	var out bytes.Buffer
	if json.Indent(&out, []byte(text), "", indent) != nil {
		return text
	}
	// Lists and objects without lists and objects stay on one line if they are short.
	flat := regexp.MustCompile(`[\[{]\n[^\[\]{}]*?[\]}]`)
	return flat.ReplaceAllStringFunc(out.String(), func(part string) string {
		one := strings.Join(strings.Fields(part), " ")
		one = strings.NewReplacer("{ ", "{", " }", "}", "[ ", "[", " ]", "]").Replace(one)
		if len(one) > 110 || slices.Contains([]string{"{", "["}, one) {
			return part
		}
		return one
	})
}
