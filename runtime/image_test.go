package runtime_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"testing"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/org"
)

// png is an image of one pixel.
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

// A model is sent an image that a message references as an artifact if its
// agent may read that artifact. The agent may do so if it may call
// get_artifact and the artifact belongs to its task.
func TestRequest_ImagesRequirePermission(t *testing.T) {
	content, err := base64.StdEncoding.DecodeString(png)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		role  org.RoleSpec
		other bool // the artifact belongs to another task
		text  bool // the artifact is not an image
		shown bool
		code  errcode.Code
	}{
		{"agent may call get_artifact", org.RoleSpec{Name: "viewer", Use: groupSet("artifact")}, false, false, true, ""},
		{"agent may not call get_artifact", org.RoleSpec{Name: "viewer", Use: groupSet("console")}, false, false, false, errcode.ToolNotAvailable},
		{"artifact of another task", org.RoleSpec{Name: "viewer", Use: groupSet("artifact")}, true, false, false, errcode.ArtifactNotFound},
		{"artifact is not an image", org.RoleSpec{Name: "viewer", Use: groupSet("artifact")}, false, true, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			free, asked := make(chan struct{}), make(chan model.Request, 1)
			fx := openFixture(t, "", withWindow(100_000, modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) {
				if r.Self.Role == "root" {
					<-free
					return endWith("done"), nil
				}
				images := chat.BuildTurns(r)[0].Images
				_, err := r.Image(lastImageRef(r))
				if len(images) == 1 != c.shown || c.shown && !bytes.Equal(images[0].Data, content) {
					t.Errorf("%d images are sent", len(images))
				}
				if got := errcode.CodeOf(err); err != nil && got != c.code || err == nil && c.code != "" {
					t.Errorf("error %v, want %q", err, c.code)
				}
				asked <- r
				return endWith("seen"), nil
			})))
			t.Cleanup(func() { close(free) })
			id := fx.start(t, org.TaskSpec{})
			by := identity.ByAgent(fx.topAgent(t, id))
			if c.other {
				by = identity.ByAgent(fx.topAgent(t, fx.start(t, org.TaskSpec{})))
			}
			artifact := builtin.Artifact{Type: "image/png", Data: content}
			if c.text {
				artifact = builtin.Artifact{Type: "image/png", Data: []byte("not an image")}
			}
			ref, err := fx.ToolHost().PutArtifact(t.Context(), newCall(by), artifact)
			if err != nil {
				t.Fatal(err)
			}
			agent := fx.spawnAgent(t, fx.topAgent(t, id), c.role)
			fx.send(t, agent, string(mustJSON(obj{"text": "look", "images": []string{ref}})))
			<-asked
		})
	}
}

// lastImageRef returns the image reference in the last message.
func lastImageRef(r model.Request) string {
	list := messages(r)
	return decodeObject(list[len(list)-1].Payload)["images"].([]any)[0].(string)
}
