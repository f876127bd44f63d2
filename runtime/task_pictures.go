package runtime

import (
	"context"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/picture"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// Limits of the pictures of a task's result.
const (
	maxTaskPictures = 20
	maxTaskRefs     = 100 // references that are looked up
)

// artifactRefs matches the references in a text.
var artifactRefs = textutil.LazyPattern(refPrefix + `[0-9A-Za-z-]{1,64}`)

// TaskPictures returns the pictures that the result of a task names as artifacts of this task, in
// order: at most 20, of tool.MaxResultData bytes together. A reference to anything else is left
// out.
func (rt *Runtime) TaskPictures(ctx context.Context, task org.Task) ([]tool.Content, error) {
	var found []tool.Content
	left := tool.MaxResultData
	for _, ref := range distinctRefs(task.Result) {
		c, err := rt.artifacts.picture(ctx, ref, task, left)
		if err != nil {
			return nil, err
		}
		if c.IsPicture() && len(found) < maxTaskPictures {
			found, left = append(found, c), left-len(c.Data)
		}
	}
	return found, nil
}

// distinctRefs returns the first references in a text, each once.
func distinctRefs(text []byte) (refs []string) {
	seen := map[string]bool{}
	for _, match := range artifactRefs().FindAll(text, 10*maxTaskRefs) {
		if ref := string(match); !seen[ref] && len(refs) < maxTaskRefs {
			seen[ref] = true
			refs = append(refs, ref)
		}
	}
	return refs
}

// picture returns an artifact of a task as a content. It returns the zero Content if the artifact
// is not a picture of the task, or has more than most bytes. It reads the data only if the record
// says that the artifact is such a picture.
func (s *ArtifactStore) picture(ctx context.Context, ref string, task org.Task, most int) (tool.Content, error) {
	a, err := readRecord[Artifact](ctx, s.store, kindArtifact, strings.TrimPrefix(ref, refPrefix), errcode.ArtifactNotFound)
	switch {
	case errcode.CodeOf(err) == errcode.ArtifactNotFound:
		return tool.Content{}, nil
	case err != nil:
		return tool.Content{}, err
	case a.Task != task.ID || !picture.IsSupported(a.MediaType) || a.Size > min(most, tool.MaxContentBytes):
		return tool.Content{}, nil
	}
	_, data, err := s.ReadArtifact(ctx, ref)
	if err != nil {
		return tool.Content{}, err
	}
	c := tool.CheckContents([]tool.Content{{Type: tool.ImageContent, Data: data}})[0]
	c.Ref = ref
	return c, nil
}
