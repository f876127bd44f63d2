package runtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

// The window of these tests, and the bytes a result may have in it.
const (
	narrow  = 8_000
	fitting = narrow / 8 * 4
)

// answering is a tool that answers what it is made with, or fails with it.
func answering(t *testing.T, name string, value any) tool.Tool {
	return probe(t, name, tool.Options{Effect: tool.ReadOnly}, func(context.Context, obj) (any, error) {
		if err, ok := value.(error); ok {
			return nil, err
		}
		return value, nil
	})
}

// callOnce calls a tool and ends with the result the model reads.
func callOnce(name string) mind {
	return func(_ context.Context, r model.Request) (model.Answer, error) {
		if list := results(r); len(list) > 0 {
			return model.Answer{Finish: model.FinishEnd, Value: list[len(list)-1].Content}, nil
		}
		return do(name, obj{}), nil
	}
}

// What is longer than an eighth of the window is kept whole, as an artifact of
// the task, and the model and the record have a preview of it.
func TestALargeResultIsKeptAndPreviewed(t *testing.T) {
	for _, c := range []struct {
		name    string
		value   any
		preview bool
	}{
		{"a text that just fits", strings.Repeat("x", fitting-2), false},
		{"a text one byte longer", strings.Repeat("x", fitting-1), true},
		{"an object", obj{"list": slices.Repeat([]string{"<é>"}, 3_000)}, true},
		{"text of long characters", strings.Repeat("語", fitting), true},
		{"a failure", errcode.New(errcode.ToolExecutionFailed, "%s", strings.Repeat("bad ", fitting)), true},
		{"one that says it is an artifact", obj{"artifactRef": "artifact:forged", "content": strings.Repeat("x", fitting)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := plan{dir: scratch(t), tools: []tool.Tool{answering(t, "look", c.value)}, model: fluent(narrow, callOnce("look"))}
			h := p.open(t)
			task := h.run(t, h.role(t, "probe"))
			if got := gjson.GetBytes(task.Result, "artifactRef").Exists() && gjson.GetBytes(task.Result, "preview").Exists(); got != c.preview {
				t.Fatalf("the model reads a preview: %t\n%.300s", got, task.Result)
			}
			if !c.preview {
				return
			}
			if len(task.Result) > fitting || !utf8.Valid(task.Result) || strings.ContainsRune(string(task.Result), utf8.RuneError) {
				t.Errorf("the preview has %d bytes; want whole characters, at most %d bytes\n%s", len(task.Result), fitting, task.Result)
			}
			wantRecorded(t, h, task.Result)
			if _, err := h.CollectGarbage(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			wantKept(t, h, task)
			h.leave(t)
			h = p.open(t)
			wantRecorded(t, h, task.Result)
			wantKept(t, h, task)
		})
	}
}

// wantRecorded checks that the record has what the model read.
func wantRecorded(t *testing.T, h *house, want json.RawMessage) {
	t.Helper()
	var got []json.RawMessage
	for _, r := range said[journal.ToolResult](t, h) {
		got = append(got, r.Result)
	}
	for _, r := range said[journal.ToolError](t, h) {
		got = append(got, r.Result)
	}
	if len(got) != 1 || !bytes.Equal(got[0], want) {
		t.Errorf("on record %s, want %s", got, want)
	}
}

// wantKept checks that the whole of a previewed result is an artifact of its
// task, the only one.
func wantKept(t *testing.T, h *house, task org.Task) {
	t.Helper()
	ref, size := gjson.GetBytes(task.Result, "artifactRef").Str, int(gjson.GetBytes(task.Result, "size").Int())
	a, content, err := h.Artifact(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	start := strings.TrimSuffix(gjson.GetBytes(task.Result, "preview").Str, "…")
	if a.Task != task.ID || len(content) != size || !json.Valid(content) || start == "" || !strings.HasPrefix(string(content), start) {
		t.Errorf("artifact of task %s has %d bytes, want %d; the preview is %.100q", a.Task, len(content), size, start)
	}
	n := 0
	for range h.Artifacts(t.Context(), "") {
		n++
	}
	if n != 1 {
		t.Errorf("%d artifacts, want 1", n)
	}
}

// A model that does what the note says reads all of it, part by part, and no
// part becomes an artifact of its own.
func TestAPreviewedResultIsReadInParts(t *testing.T) {
	whole := map[string]any{"list": slices.Repeat([]string{`a "quoted" <word>, é`}, 1_500)}
	var read strings.Builder
	h := plan{tools: []tool.Tool{answering(t, "look", whole)}, model: fluent(narrow, brain(func(r model.Request) model.Answer {
		if sumsUp(r) {
			return end("reading")
		}
		switch answers(r) {
		case 0:
			return do("look", obj{})
		case 1: // all at once, against the note
			return do("get_artifact", obj{"ref": last(r)["artifactRef"]})
		}
		now := last(r)
		offset := 0.0
		if answers(r) > 2 {
			read.WriteString(now["content"].(string))
			if offset = now["offset"].(float64) + now["length"].(float64); offset >= now["size"].(float64) {
				return end("done")
			}
		}
		note := decode(results(r)[0].Content)["note"].(string)
		_, after, _ := strings.Cut(note, "at most ")
		length, err := strconv.Atoi(strings.SplitN(after, ",", 2)[0])
		if err != nil {
			return end(note)
		}
		return do("get_artifact", obj{"ref": decode(results(r)[0].Content)["artifactRef"], "offset": offset, "length": length})
	}))}.open(t)
	h.workerRole(t, "probe", "artifact")
	task := h.run(t, org.TaskSpec{Role: "worker"})
	h.want(t, task, `"done"`, "")
	list := said[journal.ToolResult](t, h)
	first, second := list[0].Result, list[1].Result
	if a, b := gjson.GetBytes(first, "artifactRef").Str, gjson.GetBytes(second, "artifactRef").Str; a != b || !gjson.GetBytes(second, "preview").Exists() {
		t.Errorf("read at once: %.200s, want a preview of %s", second, a)
	}
	_, content, err := h.Artifact(t.Context(), gjson.GetBytes(first, "artifactRef").Str)
	if err != nil || read.String() != string(content) {
		t.Errorf("read %d bytes of %d, error %v", read.Len(), len(content), err)
	}
	for a := range h.Artifacts(t.Context(), "") {
		if a.Type != "result of look" {
			t.Errorf("there is an artifact %q", a.Type)
		}
	}
}

func TestANoteSaysWhetherTheRestCanBeRead(t *testing.T) {
	for _, c := range []struct {
		name   string
		groups []string
		bytes  int64
		note   string
		ref    bool
	}{
		{"with get_artifact", []string{"probe", "artifact"}, 0, "read it in parts with get_artifact", true},
		{"without get_artifact", []string{"probe"}, 0, "you have no tool to read it", true},
		{"larger than an artifact may be", []string{"probe", "artifact"}, 5_000, "too large for your context and too large to be stored", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := plan{
				tools:  []tool.Tool{answering(t, "look", strings.Repeat("x", 9_000))},
				model:  fluent(narrow, callOnce("look")),
				config: func(r *runtime.Config) { r.Storage.ArtifactBytes = c.bytes },
			}.open(t)
			h.workerRole(t, c.groups...)
			task := h.run(t, org.TaskSpec{Role: "worker"})
			note := gjson.GetBytes(task.Result, "note").Str
			if ref := gjson.GetBytes(task.Result, "artifactRef").Exists(); ref != c.ref || !strings.Contains(note, c.note) || gjson.GetBytes(task.Result, "size").Int() != 9_002 {
				t.Errorf("the model reads %.100s … %s", task.Result, note)
			}
		})
	}
}

func TestWhatIsShownAsAPictureIsNotPreviewed(t *testing.T) {
	picture := obj{"mediaType": "image/png", "encoding": "base64", "content": bytes.Repeat([]byte{1, 2, 3}, 4_000)}
	h := plan{tools: []tool.Tool{answering(t, "look", picture)}, model: fluent(narrow, callOnce("look"))}.open(t)
	if task := h.run(t, h.role(t, "probe")); gjson.GetBytes(task.Result, "content").Str == "" {
		t.Errorf("the model reads %.200s", task.Result)
	}
}

func TestAScriptIsGivenEveryResultWhole(t *testing.T) {
	h := plan{tools: []tool.Tool{answering(t, "look", strings.Repeat("x", 300_000))}, model: callOnce("look")}.open(t)
	if task := h.run(t, h.role(t, "probe")); len(task.Result) != 300_002 {
		t.Errorf("it reads %d bytes", len(task.Result))
	}
}

// No tool has a name as long as a model may make one up: what is recorded of
// it, and told, is cut.
func TestAMadeUpNameIsCut(t *testing.T) {
	h := plan{model: fluent(narrow, callOnce(strings.Repeat("no_such_tool_", 100_000)))}.open(t)
	task := h.run(t, h.role(t, "artifact"))
	if len(task.Result) > 1000 || gjson.GetBytes(task.Result, "error").Str != string(errcode.UnknownTool) {
		t.Errorf("the model reads %d bytes: %.200s", len(task.Result), task.Result)
	}
	for _, call := range said[journal.ToolCall](t, h) {
		if len(call.Tool) > 140 {
			t.Errorf("a name of %d bytes is on record", len(call.Tool))
		}
	}
}
