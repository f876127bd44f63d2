package runtime_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/pictures"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// drawTool returns a text and a picture.
func drawTool(t *testing.T, text string) tool.Tool {
	return newTool(t, "draw", tool.Options{}, func(context.Context, obj) (any, error) {
		return tool.Result{Text: text, Content: []tool.Content{{Type: tool.ImageContent, Data: pictures.Dot}}}, nil
	})
}

// pictureRef returns the artifact that the first picture of a result names.
func pictureRef(result []byte) string {
	return gjson.GetBytes(result, `content.#(type=="image").artifactRef`).Str
}

// The model of the agent sees the picture, although it has no tool to fetch artifacts. The record
// has the reference of an artifact and no data.
func TestContent_AgentSeesPictureOfItsCall(t *testing.T) {
	var seen [][]model.Image
	fx := fixtureConfig{tools: []tool.Tool{drawTool(t, "done")}, model: withWindow(100_000, answerFunc(func(r model.Request) model.Answer {
		if len(results(r)) == 0 {
			return callTools("draw", obj{})
		}
		seen = append(seen, chat.BuildTurns(r)[2].Results[0].Images)
		return endWith(string(results(r)[0].Content))
	}))}.open(t)
	task := fx.run(t, fx.groupTask(t, "probe"))
	if len(seen) != 1 || len(seen[0]) != 1 || seen[0][0].MediaType != "image/png" || !bytes.Equal(seen[0][0].Data, pictures.Dot) {
		t.Fatalf("the model saw %v", seen)
	}
	recorded := bodiesOf[journal.ToolResult](t, fx)
	ref := pictureRef(recorded[0].Result)
	want := `{"content":[{"type":"text","text":"done"},{"type":"image","mimeType":"image/png","size":73,"artifactRef":"` + ref + `"}]}`
	if string(recorded[0].Result) != want || ref == "" {
		t.Errorf("recorded %s, want %s", recorded[0].Result, want)
	}
	a, content, err := fx.ArtifactStore().ReadArtifact(t.Context(), ref)
	if err != nil || !bytes.Equal(content, pictures.Dot) || a.Type != "image/png" || a.Task != task.ID || a.By != task.Top || a.Call != recorded[0].Call || string(a.Meta) != `{"tool":"draw"}` {
		t.Errorf("the artifact is %+v, %v", a, err)
	}
	if log := fx.eventLog(t); strings.Contains(log, base64.StdEncoding.EncodeToString(pictures.Dot)[:20]) {
		t.Errorf("the record has the data: %s", log)
	}
}

// Another agent of the task needs get_artifact to see the picture of a result.
func TestContent_PictureOfAnotherAgentNeedsPermission(t *testing.T) {
	for group, want := range map[toolgroups.GroupID]errcode.Code{"console": errcode.ToolNotAvailable, "artifact": ""} {
		free, asked := make(chan struct{}), make(chan error, 1)
		refs := make(chan string, 1)
		fx := fixtureConfig{tools: []tool.Tool{drawTool(t, "")}, model: withWindow(100_000, modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) {
			switch {
			case r.Self.Role == "viewer":
				_, err := r.Image(lastImageRef(r))
				asked <- err
				return endWith("seen"), nil
			case len(results(r)) == 0:
				return callTools("draw", obj{}), nil
			}
			refs <- pictureRef(results(r)[0].Content)
			<-free
			return endWith("done"), nil
		}))}.open(t)
		fx.createWorkerRole(t, "probe", "org_management", "artifact", "console")
		task := fx.start(t, org.TaskSpec{Role: "worker", Text: "draw"})
		ref := <-refs
		viewer := fx.spawnAgent(t, fx.topAgent(t, task), org.RoleSpec{Name: "viewer", Use: groupSet(group)})
		fx.send(t, viewer, string(mustJSON(obj{"text": "look", "images": []string{ref}})))
		if err := <-asked; errcode.CodeOf(err) != want && (err != nil || want != "") {
			t.Errorf("%s: %v, want %q", group, err, want)
		}
		close(free)
		fx.wait(t, task)
	}
}

// A caller gets the data. The record has a reference to an artifact of the caller.
func TestContent_CallerGetsDataAndArtifact(t *testing.T) {
	fx := fixtureConfig{tools: []tool.Tool{drawTool(t, "done")}}.open(t)
	ann := fx.createCaller(t, "probe", "artifact")
	got := fx.invoke(t, ann, "draw", obj{}).Result
	if len(got.Content) != 1 || !bytes.Equal(got.Content[0].Data, pictures.Dot) || got.Content[0].Ref == "" {
		t.Fatalf("the caller got %+v", got)
	}
	if recorded := bodiesOf[journal.ToolResult](t, fx)[0].Result; string(recorded) != string(got.JSON()) {
		t.Errorf("recorded %s, the caller got %s", recorded, got.JSON())
	}
	fetched := fx.invoke(t, ann, "get_artifact", obj{"ref": got.Content[0].Ref}).Result.JSON()
	if gjson.GetBytes(fetched, "content").Str != base64.StdEncoding.EncodeToString(pictures.Dot) {
		t.Errorf("get_artifact returns %s", fetched)
	}
	bob := identity.ByCaller("bob", ann.Role)
	if fetched := fx.invoke(t, bob, "get_artifact", obj{"ref": got.Content[0].Ref}).Result.JSON(); string(fetched) != "null" {
		t.Errorf("another caller gets %s", fetched)
	}
}

// Data that cannot be stored is not shown, and the result says so.
func TestContent_WithoutRoomIsLeftOut(t *testing.T) {
	for name, c := range map[string]struct {
		limits runtime.StorageLimits
		want   string
	}{
		"larger than an artifact may be":  {runtime.StorageLimits{ArtifactBytes: 72}, "over the limit of 72"},
		"more than the caller may record": {runtime.StorageLimits{RecordedPerCaller: 4000}, "not kept"},
	} {
		data := append(bytes.Clone(pictures.Dot), make([]byte, 5000)...)
		if c.limits.ArtifactBytes > 0 {
			data = pictures.Dot
		}
		draw := newTool(t, "draw", tool.Options{}, func(context.Context, obj) (any, error) {
			return tool.Result{Content: []tool.Content{{Type: tool.ImageContent, Data: data}, {Type: tool.TextContent, Text: "t"}}}, nil
		})
		fx := fixtureConfig{tools: []tool.Tool{draw}, configure: func(r *runtime.Config) { r.Storage = c.limits }}.open(t)
		got := fx.invoke(t, fx.createCaller(t, "probe"), "draw", obj{}).Result
		if first := got.Content[0]; first.Data != nil || first.Ref != "" || !strings.Contains(first.Note, c.want) || got.Content[1].Text != "t" || got.IsError {
			t.Errorf("%s: %+v", name, got)
		}
		if recorded := bodiesOf[journal.ToolResult](t, fx)[0].Result; string(recorded) != string(got.JSON()) {
			t.Errorf("%s: recorded %s, the caller got %s", name, recorded, got.JSON())
		}
		for a := range fx.ArtifactStore().ListArtifacts(t.Context(), "") {
			t.Errorf("%s: stored %+v", name, a)
		}
	}
}

// A result that is cut for the conversation keeps its picture.
func TestContent_CutResultKeepsPicture(t *testing.T) {
	images := 0
	fx := fixtureConfig{tools: []tool.Tool{drawTool(t, strings.Repeat("long ", 5_000))}, model: withWindow(previewWindow, answerFunc(func(r model.Request) model.Answer {
		if len(results(r)) == 0 {
			return callTools("draw", obj{})
		}
		images = len(chat.BuildTurns(r)[2].Results[0].Images)
		return endWith(string(results(r)[0].Content))
	}))}.open(t)
	task := fx.run(t, fx.groupTask(t, "probe"))
	var text string
	if err := json.Unmarshal(task.Result, &text); err != nil || images != 1 || !gjson.Get(text, "truncated").Bool() || len(text) > 4_000 {
		t.Errorf("%d images, %v: %s", images, err, task.Result)
	}
}

// Whenever the process ends, a recorded result has its picture, and the model is sent the same
// afterwards.
func TestContent_CrashKeepsPictureWithOutcome(t *testing.T) {
	ended := false
	for n := 1; !ended; n++ {
		for _, after := range []bool{false, true} {
			dir, crashing := fastTempDir(t), &crashingStore{after: after, commitsLeft: 1 << 30}
			var mu sync.Mutex
			shown := map[string]bool{}
			drawing := withWindow(100_000, answerFunc(func(r model.Request) model.Answer {
				if len(results(r)) == 0 {
					return callTools("draw", obj{})
				}
				mu.Lock()
				defer mu.Unlock()
				shown[string(results(r)[0].Content)] = true
				return endWith("done")
			}))
			cfg := fixtureConfig{dir: dir, tools: []tool.Tool{drawTool(t, "x")}, model: drawing}
			killed := cfg
			killed.wrapStore = func(s journal.Store) journal.Store { crashing.Store = s; return crashing }
			first := killed.open(t)
			spec := first.groupTask(t, "probe")
			crashing.mu.Lock()
			crashing.commitsLeft = n
			crashing.mu.Unlock()
			id, err := first.StartTask(t.Context(), spec)
			if err == nil {
				_, _ = first.WaitTask(t.Context(), id) // it may crash
			}
			ended = !crashing.crashed()
			first.shutdown(t)

			second := cfg.open(t)
			if _, known := second.Org().TaskByID(id); err == nil && known {
				_ = second.ResumeTask(t.Context(), id) // it may have ended
				second.wait(t, id)
			}
			for _, r := range bodiesOf[journal.ToolResult](t, second) {
				if _, content, err := second.ArtifactStore().ReadArtifact(t.Context(), pictureRef(r.Result)); err != nil || !bytes.Equal(content, pictures.Dot) {
					t.Errorf("crash at commit %d: %s: %v", n, r.Result, err)
				}
				if !shown[string(r.Result)] {
					t.Errorf("crash at commit %d: the model was shown %v, and the record has %s", n, shown, r.Result)
				}
			}
			if got, err := second.ArtifactStore().CollectGarbage(t.Context(), false); err != nil || got.Contents != 0 {
				t.Errorf("crash at commit %d: %+v, %v", n, got, err)
			}
			second.shutdown(t)
		}
	}
}

// The result of a task names pictures of this task by their references.
func TestTaskPictures_AreOfTheTask(t *testing.T) {
	fx := fixtureConfig{tools: []tool.Tool{drawTool(t, "")}, model: answerFunc(func(r model.Request) model.Answer {
		if len(results(r)) < 2 {
			return callTools("draw", obj{})
		}
		return endWith("see " + pictureRef(results(r)[0].Content) + ", again " + pictureRef(results(r)[0].Content) + " and artifact:none")
	})}.open(t)
	spec := fx.groupTask(t, "probe")
	one, two := fx.run(t, spec), fx.run(t, spec)
	got, err := fx.TaskPictures(t.Context(), one)
	if err != nil || len(got) != 1 || !bytes.Equal(got[0].Data, pictures.Dot) || !strings.Contains(string(one.Result), got[0].Ref) {
		t.Errorf("got %+v, %v", got, err)
	}
	two.ID = one.ID // its result names a picture of another task
	if got, err := fx.TaskPictures(t.Context(), two); err != nil || len(got) != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}
