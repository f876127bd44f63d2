package runtime_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

// cutBy returns what a model with a window of 2,000 tokens reads of a result, whose complete
// text is content.
func cutBy(t *testing.T, result any) (cut gjson.Result, content string) {
	t.Helper()
	look := constTool(t, "look", result)
	fx := fixtureConfig{tools: []tool.Tool{look}, model: withWindow(2_000, callOnce("look"))}.open(t)
	read := fx.run(t, fx.groupTask(t, "probe")).Result
	if len(read) > 2_000/8*4 {
		t.Errorf("the model reads %d bytes", len(read))
	}
	if err := strictjson.CheckObject(read, nil); err != nil {
		t.Errorf("%v: %s", err, read)
	}
	_, stored, err := fx.ArtifactStore().ReadArtifact(t.Context(), gjson.GetBytes(read, "artifactRef").Str)
	if err != nil {
		t.Fatal(err)
	}
	content = string(stored)
	_ = json.Unmarshal(stored, &content) // a text; other JSON stays as it is
	return gjson.ParseBytes(read), content
}

// A result that is too large keeps its shape: JSON stays JSON, and its longest texts and lists
// are cut. nextOffset is where the complete result goes on.
func TestCutResult_KeepsShape(t *testing.T) {
	long := strings.Repeat("word ", 2_000)
	page := strings.Repeat(`<a href=\"é\">`, 2_000)
	for _, c := range []struct {
		name   string
		result any
		want   map[string]string // raw values, or beginnings of them
		next   string            // what the complete result has at nextOffset, or ""
	}{
		{"one long field", obj{"status": 200, "body": long, "url": "u"}, map[string]string{"status": "200", "body": `"word word `, "url": `"u"`, "truncated": "true"}, ""},
		{"escapes", obj{"body": page, "n": nil}, map[string]string{"body": `"\u003ca href=\\\"é`, "n": "null"}, ""},
		{"surrogate pairs", tool.Result{Structured: json.RawMessage(`{"body":"` + strings.Repeat(`\ud83d\ude00`, 500) + `"}`)}, map[string]string{"body": `"\ud83d\ude00`}, `\ud83d\ude00`},
		{"long text in depth", obj{"a": obj{"b": []any{1, obj{"text": long}}, "c": "c"}}, map[string]string{"a.b.0": "1", "a.b.1.text": `"word word `, "a.c": `"c"`}, ""},
		{"list of objects", []obj{{"name": "one", "text": strings.Repeat("x", 100)}, {"name": "two"}, {"name": "three", "text": long}}, map[string]string{"preview.0.name": `"one"`, "preview.1.name": `"two"`, "preview.2.name": `"three"`, "preview.2.text": `"word `}, ""},
		{"list of short objects", slices.Repeat([]obj{{"name": "one", "n": 1}}, 200), map[string]string{"preview.0.name": `"one"`, "preview.1.n": "1"}, `{"n":1,"name":"one"}`},
		{"list in an object", obj{"files": strings.Fields(long), "folder": "f"}, map[string]string{"files.0": `"word"`, "folder": `"f"`}, `"word"`},
		{"two long fields", obj{"a": long, "b": long}, map[string]string{"a": `"word `, "b": `"word `}, ""},
		{"JSON as a text", `{"status":200,"body":"` + long + `"}`, map[string]string{"status": "200", "body": `"word word `}, ""},
		{"JSON as a text with spaces", " \n{ \"status\" : 200 , \"body\" : \"" + long + "\" }\n", map[string]string{"status": "200", "body": `"word word `}, ""},
		{"list as a text", `[1,2,"` + long + `"]`, map[string]string{"preview.0": "1", "preview.1": "2", "preview.2": `"word `}, ""},
		{"ambiguous JSON as a text", `{"a":1,"a":"` + long + `"}`, map[string]string{"preview": `"{\"a\":1,\"a\":`}, ""},
		{"text", long, map[string]string{"preview": `"word word `}, ""},
		{"fields of the same names", obj{"note": long, "size": "mine", "truncated": "no", "body": "b"}, map[string]string{"body": `"b"`, "truncated": "true", "size": "1"}, ""},
		{"error", errcode.New(errcode.ToolExecutionFailed, "%s", long), map[string]string{"error": `"tool_execution_failed"`, "message": `"word word `, "toolName": `"look"`}, ""},
		{"many fields", manyFields(400), map[string]string{"k000": `"vvv…"`, "k010": `"vvv…"`}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cut, content := cutBy(t, c.result)
			for path, want := range c.want {
				if got := cut.Get(path).Raw; !strings.HasPrefix(got, want) {
					t.Errorf("%s is %.80s, want %s", path, got, want)
				}
			}
			next := int(cut.Get("nextOffset").Int())
			if next < 0 || next >= len(content) || !strings.HasPrefix(content[next:], c.next) {
				t.Fatalf("nextOffset is %d of %d bytes: %.200s", next, len(content), cut.Raw)
			}
			if size := int(cut.Get("size").Int()); size != len(content) {
				t.Errorf("size %d, want %d", size, len(content))
			}
			if strings.Count(cut.Raw, "…") != 1 {
				return
			}
			for path := range c.want { // of the text that is cut, the end is where the rest begins
				text := cut.Get(path)
				shown, isCut := strings.CutSuffix(text.Str, "…")
				raw := strings.TrimSuffix(strings.Trim(text.Raw, `"`), "…")
				if isCut && !strings.HasSuffix(content[:next], raw) && !strings.HasSuffix(content[:next], shown) {
					t.Errorf("%s is cut at %q, and nextOffset is %d after %q", path, shown[max(0, len(shown)-20):], next, content[max(0, next-20):next])
				}
			}
		})
	}
}

// manyFields returns an object with n fields of some length.
func manyFields(n int) obj {
	many := obj{}
	for i := range n {
		many[fmt.Sprintf("k%03d", i)] = strings.Repeat("v", 40)
	}
	return many
}

// A small model reads a file of 1 MB page by page to its end. No request exceeds its window.
func TestReadFile_SmallWindowReadsToEnd(t *testing.T) {
	var file bytes.Buffer
	for n := 0; file.Len() < 1_000_000; n++ {
		fmt.Fprintf(&file, "line %d: \"quoted\" and <é>\n", n)
	}
	for _, window := range short.SampleList(t, 1, []int{2_000, 4_000, 8_000}) {
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			var read strings.Builder
			next, done := 0.0, false
			fx := fixtureConfig{model: withWindow(window, answerFunc(func(r model.Request) model.Answer {
				if n := chat.RequestTokens(r); n > window {
					t.Errorf("a request has %d tokens", n)
				}
				page := lastResult(r)
				switch {
				case isSummaryRequest(r):
					return endWith(fmt.Sprintf("I read up to byte %.0f.", next))
				case page["content"] != nil && page["offset"] == next && !done:
					read.WriteString(page["content"].(string))
					done = page["truncated"] != true
					next, _ = page["nextOffset"].(float64)
				}
				if done {
					return endWith("read")
				}
				return callTools("read_file", obj{"path": "f", "offset": next})
			})), configure: func(c *runtime.Config) { c.Limits.Requests = 10_000 }}.open(t)
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "f"), file.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			fx.declare(t, org.RoleSpec{Name: "reader", Use: groupSet("workspace"), Limits: org.AgentLimits{Rounds: 10_000}})
			fx.wantResult(t, fx.run(t, org.TaskSpec{Role: "reader", Workspace: dir}), `"read"`, "")
			if read.String() != file.String() {
				t.Errorf("read %d bytes of %d", read.Len(), file.Len())
			}
		})
	}
}
