package runtime_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
)

// The first message names the files of a task. A short text stands in it, an image is shown,
// and agents fetch every file as an artifact.
func TestTaskFiles_ReachFirstAgent(t *testing.T) {
	image, err := base64.StdEncoding.DecodeString(png)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("line\n", 10_000)
	var ref string
	fx := openFixture(t, "", withWindow(100_000, modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) {
		if n := answerCount(r); n == 1 {
			return endWith(lastResult(r)["type"].(string)), nil
		}
		payload := decodeObject(messages(r)[0].Payload)
		files := payload["files"].([]any)
		if first := files[0].(obj); first["name"] != "a.csv" || first["content"] != "a,b\n" || first["mediaType"] != "text/plain; charset=utf-8" {
			t.Errorf("a.csv: %v", first)
		}
		if second := files[1].(obj); second["content"] != nil || second["size"] != float64(len(long)) {
			t.Errorf("long.txt: %.200v", second)
		}
		ref = files[2].(obj)["artifact"].(string)
		if shown := chat.BuildTurns(r)[0].Images; len(shown) != 1 || !bytes.Equal(shown[0].Data, image) || payload["images"].([]any)[0] != ref {
			t.Errorf("%d images are shown: %v", len(shown), payload["images"])
		}
		return callTools("get_artifact", obj{"ref": files[1].(obj)["artifact"]}), nil
	})))
	spec := fx.groupTask(t, "artifact")
	spec.Files = []org.TaskFile{{Name: "a.csv", Data: []byte("a,b\n")}, {Name: "long.txt", Data: []byte(long)}, {Name: "x.png", Data: image}}
	task := fx.run(t, spec)
	fx.wantResult(t, task, `"text/plain"`, "")
	a, content, err := fx.ArtifactStore().ReadArtifact(t.Context(), ref)
	if err != nil || !bytes.Equal(content, image) || a.Task != task.ID || a.By != "" || string(a.Meta) != `{"name":"x.png"}` {
		t.Errorf("%+v %v", a, err)
	}
}

// Only the first agent sees the user's images without get_artifact. No agent sees those of
// another task.
func TestTaskFiles_ImagesOfOthers(t *testing.T) {
	image, err := base64.StdEncoding.DecodeString(png)
	if err != nil {
		t.Fatal(err)
	}
	free := make(chan struct{})
	codes := make(chan errcode.Code, 1)
	fx := openFixture(t, "", withWindow(100_000, modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) {
		if r.Self.Role == "root" {
			<-free
			return endWith("done"), nil
		}
		_, err := r.Image(lastImageRef(r))
		codes <- errcode.CodeOf(err)
		return endWith("seen"), nil
	})))
	t.Cleanup(func() { close(free) })
	start := func() (top identity.AgentID, ref string) {
		id := fx.start(t, org.TaskSpec{Files: []org.TaskFile{{Name: "x.png", Data: image}}})
		for a, err := range fx.ArtifactStore().ListArtifacts(t.Context(), id) {
			if err != nil {
				t.Fatal(err)
			}
			ref = "artifact:" + a.ID
		}
		return fx.topAgent(t, id), ref
	}
	top, own := start()
	_, foreign := start()
	for _, c := range []struct {
		role *org.RoleSpec
		ref  string
		want errcode.Code
	}{
		{&org.RoleSpec{Name: "blind", Use: groupSet("console")}, own, errcode.ToolNotAvailable},
		{&org.RoleSpec{Name: "viewer", Use: groupSet("artifact")}, own, ""},
		{&org.RoleSpec{Name: "curious", Use: groupSet("artifact")}, foreign, errcode.ArtifactNotFound},
	} {
		agent := fx.spawnAgent(t, top, *c.role)
		fx.send(t, agent, string(mustJSON(obj{"text": "look", "images": []string{c.ref}})))
		if got := <-codes; got != c.want {
			t.Errorf("%s: %q, want %q", c.role.Name, got, c.want)
		}
	}
}

// Files count as recorded bytes, and nothing is recorded for files that are rejected.
func TestTaskFiles_Limits(t *testing.T) {
	fx := fixtureConfig{
		configure: func(c *runtime.Config) { c.Storage.Recorded = 1 << 20 },
		model:     answerFunc(func(model.Request) model.Answer { return endWith("done") }),
	}.open(t)
	for _, c := range []struct {
		files []org.TaskFile
		code  errcode.Code
	}{
		{[]org.TaskFile{{Name: "../x", Data: []byte("x")}}, errcode.InvalidArguments},
		{[]org.TaskFile{{Name: "x"}}, errcode.InvalidArguments},
		{[]org.TaskFile{{Name: "x", Data: make([]byte, 2<<20)}}, errcode.StorageLow},
	} {
		if _, err := fx.StartTask(t.Context(), org.TaskSpec{Caller: operator, Files: c.files}); errcode.CodeOf(err) != c.code {
			t.Errorf("%q of %d bytes: %v", c.files[0].Name, len(c.files[0].Data), err)
		}
	}
	for a := range fx.ArtifactStore().ListArtifacts(t.Context(), "") {
		t.Errorf("artifact %+v", a)
	}
	spec := org.TaskSpec{Caller: operator, Key: "k", Files: []org.TaskFile{{Name: "x", Data: []byte("x")}}}
	first := fx.start(t, spec)
	if again := fx.start(t, spec); again != first {
		t.Errorf("the same key and files start another task")
	}
	spec.Files = []org.TaskFile{{Name: "x", Data: []byte("y")}}
	if _, err := fx.StartTask(t.Context(), spec); errcode.CodeOf(err) != errcode.Conflict {
		t.Errorf("the same key with another file: %v", err)
	}
	fx.wait(t, first)
}
