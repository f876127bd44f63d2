package builtin

import (
	"context"

	"github.com/rolecall/rolecall/builtin/workspace"
	"github.com/rolecall/rolecall/errcode"
)

const writeFileText = `Write a whole file of the workspace. An existing file is replaced, missing folders are made.`

const writeFileInput = `{
	"type": "object",
	"properties": {
		"path": ` + pathProperty + `,
		"content": {
			"type": "string",
			"description": "The whole new content."
		},
		"encoding": {
			"type": "string",
			"x-hidden": true,
			"description": "base64, if content is base64.",
			"enum": ["base64"]
		},
		"artifactRef": {
			"type": "string",
			"x-hidden": true,
			"description": "An artifact whose content the file gets, instead of content.",
			"minLength": 1,
			"maxLength": 200
		},
		"mimeType": {
			"type": "string",
			"x-hidden": true,
			"description": "Media type of the content, such as text/markdown. Optional; it has no effect.",
			"maxLength": 200
		}
	},
	"required": ["path"],
	"x-required": ["path", "content"],
	"additionalProperties": false
}`

// writeFile holds the arguments of write_file. Exactly one of Content and
// Artifact is set.
type writeFile struct {
	Path     string  `json:"path"`
	Content  *string `json:"content,omitempty"`
	Encoding string  `json:"encoding,omitempty"`
	Artifact string  `json:"artifactRef,omitempty"`
	MimeType string  `json:"mimeType,omitempty"` // accepted because models send it; not stored
}

// written is the result of write_file.
type written struct {
	OK   bool   `json:"ok"`
	Path string `json:"path"`
	Size int    `json:"size"`
}

// write handles write_file.
func (f files) write(ctx context.Context, in writeFile) (written, error) {
	if in.Artifact != "" { // the content of the artifact is in memory until it is written
		release, err := f.reads.Acquire(ctx, fairKey(currentCall(ctx)))
		if err != nil {
			return written{}, err
		}
		defer release()
	}
	data, err := f.content(ctx, in)
	if err != nil {
		return written{}, err
	}
	return inWorkspace(ctx, f, in.Path, func(ws *workspace.Dir, name string) (written, error) {
		if err := ws.WriteFile(ctx, name, data); err != nil {
			return written{}, err
		}
		return written{true, name, len(data)}, nil
	})
}

// content returns the bytes to write.
func (f files) content(ctx context.Context, in writeFile) ([]byte, error) {
	switch {
	case in.Content != nil && in.Artifact == "":
		return decodeContent(*in.Content, in.Encoding)
	case in.Content != nil || in.Artifact == "":
		return nil, errcode.New(errcode.InvalidArguments, "write_file: set exactly one of content and artifactRef").With("ok", false)
	case in.Encoding != "":
		return nil, errcode.New(errcode.InvalidArguments, "write_file: encoding describes content; leave it out with artifactRef").With("ok", false)
	}
	call := currentCall(ctx)
	if err := checkOtherTool(ctx, f.limits, "write_file with artifactRef", "get_artifact", map[string]string{"ref": in.Artifact}); err != nil {
		return nil, err
	}
	a, err := f.artifacts.GetArtifact(ctx, call, in.Artifact)
	if err == nil && a == nil {
		err = errcode.New(errcode.ArtifactNotFound, "your task has no artifact %q; copy the reference that put_artifact returned", in.Artifact).With("ok", false)
	}
	if err != nil {
		return nil, err
	}
	content, _ := a.fileContent()
	return content, nil
}
