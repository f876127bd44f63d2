package runtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/pictures"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

// The context window of these tests, and the limit of a result in it, in bytes.
const (
	previewWindow = 8_000
	previewLimit  = previewWindow / 8 * 4
)

// constTool returns a tool with a fixed result; an error as the value makes it
// fail.
func constTool(t *testing.T, name string, value any) tool.Tool {
	return newTool(t, name, tool.Options{Effect: tool.ReadOnly}, func(context.Context, obj) (any, error) {
		if err, ok := value.(error); ok {
			return nil, err
		}
		return value, nil
	})
}

// callOnce returns a model that calls a tool and ends with its result.
func callOnce(name string) modelFunc {
	return func(_ context.Context, r model.Request) (model.Answer, error) {
		if list := results(r); len(list) > 0 {
			return model.Answer{Finish: model.FinishEnd, Value: list[len(list)-1].Content}, nil
		}
		return callTools(name, obj{}), nil
	}
}

// A result larger than an eighth of the window is stored as an artifact of the
// task. The model and the journal get a preview of it.
func TestPreview_StoresLargeResult(t *testing.T) {
	for _, c := range []struct {
		name    string
		value   any
		preview bool
	}{
		{"text at the limit", strings.Repeat("x", previewLimit-2), false},
		{"text above the limit", strings.Repeat("x", previewLimit-1), true},
		{"object", obj{"list": slices.Repeat([]string{"<é>"}, 3_000)}, true},
		{"text of multibyte characters", strings.Repeat("語", previewLimit), true},
		{"error", errcode.New(errcode.ToolExecutionFailed, "%s", strings.Repeat("bad ", previewLimit)), true},
		{"forged artifact reference", obj{"artifactRef": "artifact:forged", "content": strings.Repeat("x", previewLimit)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := fixtureConfig{dir: fastTempDir(t), tools: []tool.Tool{constTool(t, "look", c.value)}, model: withWindow(previewWindow, callOnce("look"))}
			fx := cfg.open(t)
			task := fx.run(t, fx.groupTask(t, "probe"))
			if got := gjson.GetBytes(task.Result, "artifactRef").Exists() && gjson.GetBytes(task.Result, "note").Exists(); got != c.preview {
				t.Fatalf("the model reads a preview: %t\n%.300s", got, task.Result)
			}
			if !c.preview {
				return
			}
			if len(task.Result) > previewLimit || !utf8.Valid(task.Result) || strings.ContainsRune(string(task.Result), utf8.RuneError) {
				t.Errorf("the preview has %d bytes; want whole characters, at most %d bytes\n%s", len(task.Result), previewLimit, task.Result)
			}
			wantRecorded(t, fx, task.Result)
			if _, err := fx.ArtifactStore().CollectGarbage(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			wantStoredResult(t, fx, task)
			fx.shutdown(t)
			fx = cfg.open(t)
			wantRecorded(t, fx, task.Result)
			wantStoredResult(t, fx, task)
		})
	}
}

// wantRecorded checks that the recorded result is the one that the model read.
func wantRecorded(t *testing.T, fx *fixture, want json.RawMessage) {
	t.Helper()
	var got []json.RawMessage
	for _, r := range bodiesOf[journal.ToolResult](t, fx) {
		got = append(got, r.Result)
	}
	for _, r := range bodiesOf[journal.ToolError](t, fx) {
		got = append(got, r.Result)
	}
	if len(got) != 1 || !bytes.Equal(got[0], want) {
		t.Errorf("recorded %s, want %s", got, want)
	}
}

// wantStoredResult checks that the complete result is the only artifact of the
// task.
func wantStoredResult(t *testing.T, fx *fixture, task org.Task) {
	t.Helper()
	ref, size := gjson.GetBytes(task.Result, "artifactRef").Str, int(gjson.GetBytes(task.Result, "size").Int())
	a, value, err := fx.ArtifactStore().ReadArtifact(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	content := string(value) // get_artifact counts the bytes of a text, and of the JSON of anything else
	if text := gjson.ParseBytes(value); text.Type == gjson.String {
		content = text.Str
	}
	if a.Task != task.ID || len(content) != size || !json.Valid(value) {
		t.Errorf("artifact of task %s has %d bytes, want %d", a.Task, len(content), size)
	}
	next := int(gjson.GetBytes(task.Result, "nextOffset").Int())
	if !gjson.GetBytes(task.Result, "truncated").Bool() || next <= 0 || next >= size {
		t.Errorf("truncated %s, nextOffset %d of %d bytes", gjson.GetBytes(task.Result, "truncated").Raw, next, size)
	}
	if preview := gjson.GetBytes(task.Result, "preview"); preview.Exists() && preview.Str != content[:next]+"…" {
		t.Errorf("the preview is %.100q, want the %d bytes before nextOffset", preview.Str, next)
	}
	n := 0
	for range fx.ArtifactStore().ListArtifacts(t.Context(), "") {
		n++
	}
	if n != 1 {
		t.Errorf("%d artifacts, want 1", n)
	}
}

// A model that follows the note reads the complete result in parts, and no part
// becomes an artifact.
func TestPreview_ResultIsReadInParts(t *testing.T) {
	for name, whole := range map[string]any{
		"JSON": map[string]any{"list": slices.Repeat([]string{`a "quoted" <word>, é`}, 1_500)}, "text": strings.Repeat("\"<é>\"\n", 5_000),
	} {
		t.Run(name, func(t *testing.T) {
			want, ok := whole.(string)
			if !ok {
				want = string(mustJSON(whole))
			}
			var read strings.Builder
			fx := fixtureConfig{tools: []tool.Tool{constTool(t, "look", whole)}, model: withWindow(previewWindow, answerFunc(func(r model.Request) model.Answer {
				if isSummaryRequest(r) {
					return endWith("reading")
				}
				if answerCount(r) == 0 {
					return callTools("look", obj{})
				}
				ref, now := decodeObject(results(r)[0].Content)["artifactRef"], lastResult(r)
				if answerCount(r) == 1 {
					read.WriteString(want[:int(now["nextOffset"].(float64))])
				} else {
					read.WriteString(now["content"].(string))
				}
				if now["truncated"] != true {
					return endWith("done")
				}
				return callTools("get_artifact", obj{"ref": ref, "offset": now["nextOffset"], "length": 1_000_000})
			}))}.open(t)
			fx.createWorkerRole(t, "probe", "artifact")
			fx.wantResult(t, fx.run(t, org.TaskSpec{Role: "worker"}), `"done"`, "")
			if read.String() != want {
				t.Errorf("read %d bytes of %d", read.Len(), len(want))
			}
			for a := range fx.ArtifactStore().ListArtifacts(t.Context(), "") {
				if a.Type != "result of look" {
					t.Errorf("there is an artifact %q", a.Type)
				}
			}
		})
	}
}

// Metadata that does not fit the window is previewed, without a hint that leads nowhere.
func TestPreview_ArtifactWithLargeMetadata(t *testing.T) {
	fx := fixtureConfig{model: withWindow(previewWindow, answerFunc(func(r model.Request) model.Answer {
		switch answerCount(r) {
		case 0:
			return callTools("put_artifact", obj{"type": "t", "content": "text", "meta": obj{"m": strings.Repeat("x", 2*previewLimit)}})
		case 1:
			return callTools("get_artifact", obj{"ref": lastResult(r)["artifactRef"]})
		}
		return model.Answer{Finish: model.FinishEnd, Value: results(r)[1].Content}
	}))}.open(t)
	got := gjson.ParseBytes(fx.run(t, fx.groupTask(t, "artifact")).Result)
	if !got.Get("truncated").Bool() || got.Get("nextOffset").Exists() || strings.Contains(got.Get("note").Str, "nextOffset") || got.Get("artifactRef").Str == "" {
		t.Errorf("the model reads %s", got.Raw)
	}
}

// read_file returns as much as the model's window takes, at most 64,000 bytes. The
// models of scripts and people have no window.
func TestReadFile_FitsWindowOfReader(t *testing.T) {
	read := answerFunc(func(r model.Request) model.Answer {
		if list := results(r); len(list) > 0 {
			return model.Answer{Finish: model.FinishEnd, Value: list[0].Content}
		}
		return callTools("read_file", obj{"path": "f"})
	})
	for _, c := range []struct {
		name     string
		model    model.Model
		from, to int64
	}{
		{"small window", withWindow(previewWindow, read), previewLimit - 300, previewLimit},
		{"large window", withWindow(1_000_000, read), 64_000, 64_000},
		{"script", read, 64_000, 64_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			fx := fixtureConfig{model: c.model}.open(t)
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "f"), bytes.Repeat([]byte("x"), 200_000), 0o600); err != nil {
				t.Fatal(err)
			}
			spec := fx.groupTask(t, "workspace")
			spec.Workspace = dir
			got := gjson.ParseBytes(fx.run(t, spec).Result)
			if n := got.Get("length").Int(); n < c.from || n > c.to || len(got.Get("content").Str) != int(n) || !got.Get("truncated").Bool() || got.Get("nextOffset").Int() != n {
				t.Errorf("length %d, want %d to %d: %.200s", n, c.from, c.to, got.Raw)
			}
		})
	}
}

func TestPreview_NoteExplainsHowToReadRest(t *testing.T) {
	for _, c := range []struct {
		name   string
		groups []string
		bytes  int64
		note   string
		ref    bool
	}{
		{"with get_artifact", []string{"probe", "artifact"}, 0, "ask for at most 4000 bytes, or read on with get_artifact at nextOffset", true},
		{"without get_artifact", []string{"probe"}, 0, "you have no tool to read it", true},
		{"larger than the artifact limit", []string{"probe", "artifact"}, 5_000, "ask for at most 4000 bytes. It was not stored", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			fx := fixtureConfig{
				tools:     []tool.Tool{constTool(t, "look", strings.Repeat("x", 9_000))},
				model:     withWindow(previewWindow, callOnce("look")),
				configure: func(r *runtime.Config) { r.Storage.ArtifactBytes = c.bytes },
			}.open(t)
			fx.createWorkerRole(t, c.groups...)
			task := fx.run(t, org.TaskSpec{Role: "worker"})
			note := gjson.GetBytes(task.Result, "note").Str
			if ref := gjson.GetBytes(task.Result, "artifactRef").Exists(); ref != c.ref || !strings.Contains(note, c.note) || gjson.GetBytes(task.Result, "size").Int() != 9_000 {
				t.Errorf("the model reads %.100s … %s", task.Result, note)
			}
		})
	}
}

func TestPreview_SkipsImages(t *testing.T) {
	image := obj{"mediaType": "image/png", "encoding": "base64", "content": append(bytes.Clone(pictures.Dot), make([]byte, 12_000)...)}
	fx := fixtureConfig{tools: []tool.Tool{constTool(t, "look", image)}, model: withWindow(previewWindow, callOnce("look"))}.open(t)
	if task := fx.run(t, fx.groupTask(t, "probe")); len(gjson.GetBytes(task.Result, "content").Str) < 16_000 {
		t.Errorf("the model reads %.200s", task.Result)
	}
}

func TestPreview_SkipsScripts(t *testing.T) {
	fx := fixtureConfig{tools: []tool.Tool{constTool(t, "look", strings.Repeat("x", 300_000))}, model: callOnce("look")}.open(t)
	if task := fx.run(t, fx.groupTask(t, "probe")); len(task.Result) != 300_002 {
		t.Errorf("it reads %d bytes", len(task.Result))
	}
}

// A tool name that a model makes up may be arbitrarily long. It is truncated in
// the journal and in the result.
func TestRecord_TruncatesUnknownToolName(t *testing.T) {
	fx := fixtureConfig{model: withWindow(previewWindow, callOnce(strings.Repeat("no_such_tool_", 100_000)))}.open(t)
	task := fx.run(t, fx.groupTask(t, "artifact"))
	if len(task.Result) > 1000 || gjson.GetBytes(task.Result, "error").Str != string(errcode.UnknownTool) {
		t.Errorf("the model reads %d bytes: %.200s", len(task.Result), task.Result)
	}
	for _, call := range bodiesOf[journal.ToolCall](t, fx) {
		if len(call.Tool) > 140 {
			t.Errorf("a name of %d bytes is recorded", len(call.Tool))
		}
	}
}
