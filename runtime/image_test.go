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

// png is a picture of one pixel.
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

// A model is shown an image that a message names as an artifact if its agent
// may read that artifact: it may call get_artifact, and the artifact is of its
// task.
func TestAnImageIsShownToWhoMayReadIt(t *testing.T) {
	picture, err := base64.StdEncoding.DecodeString(png)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		role  org.RoleSpec
		other bool // the artifact is of another task
		text  bool // the artifact is no picture
		shown bool
		code  errcode.Code
	}{
		{"who may call get_artifact", org.RoleSpec{Name: "viewer", Use: use("artifact")}, false, false, true, ""},
		{"who may not", org.RoleSpec{Name: "viewer", Use: use("console")}, false, false, false, errcode.ToolNotAvailable},
		{"who works in another task", org.RoleSpec{Name: "viewer", Use: use("artifact")}, true, false, false, errcode.ArtifactNotFound},
		{"what is no picture", org.RoleSpec{Name: "viewer", Use: use("artifact")}, false, true, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			free, asked := make(chan struct{}), make(chan model.Request, 1)
			h := open(t, "", fluent(100_000, mind(func(_ context.Context, r model.Request) (model.Answer, error) {
				if r.Self.Role == "root" {
					<-free
					return end("done"), nil
				}
				images := chat.Turns(r)[0].Images
				_, err := r.Image(decodeRef(r))
				if len(images) == 1 != c.shown || c.shown && !bytes.Equal(images[0].Data, picture) {
					t.Errorf("%d images are shown", len(images))
				}
				if got := errcode.Of(err); err != nil && got != c.code || err == nil && c.code != "" {
					t.Errorf("the image is refused with %v, want %q", err, c.code)
				}
				asked <- r
				return end("seen"), nil
			})))
			t.Cleanup(func() { close(free) })
			id := h.start(t, org.TaskSpec{})
			by := identity.ByAgent(h.top(t, id))
			if c.other {
				by = identity.ByAgent(h.top(t, h.start(t, org.TaskSpec{})))
			}
			content := builtin.Artifact{Type: "image/png", Data: picture}
			if c.text {
				content = builtin.Artifact{Type: "image/png", Data: []byte("no picture")}
			}
			ref, err := h.PutArtifact(t.Context(), called(by), content)
			if err != nil {
				t.Fatal(err)
			}
			agent := h.hire(t, h.top(t, id), c.role)
			h.tell(t, agent, string(encode(obj{"text": "look", "images": []string{ref}})))
			<-asked
		})
	}
}

// decodeRef gives the reference in the last message.
func decodeRef(r model.Request) string {
	list := messages(r)
	return decode(list[len(list)-1].Payload)["images"].([]any)[0].(string)
}
