package builtin

import (
	"context"

	"github.com/rolecall/rolecall/builtin/workspace"
	"github.com/rolecall/rolecall/errcode"
)

const writeFileText = `Write a file of your workspace, replacing an existing one; missing folders are created. ` +
	`Use it to store work as files; use put_artifact to hand work to others. ` +
	`Give content, the whole new content as text, or as a base64 string with encoding "base64" for binary data; at most 8 MiB. ` +
	`Or give artifactRef instead, and the file gets the content of that artifact of your task: a text as it is, bytes as they are, anything else as JSON; this also needs get_artifact. ` +
	`The file is replaced atomically, so a reader never sees a part of it. Symbolic links and files marked read-only are not written. ` +
	`The workspace has a quota, which get_workspace_info shows; a write over it fails with quota_exceeded. ` +
	`Answers {ok, path, size} with size in bytes. ` +
	`Example: {"path":"notes/plan.md","content":"# Plan\n"}`

const writeFileInput = `{
	"type": "object",
	"properties": {
		"path": ` + pathProperty + `,
		"content": {
			"type": "string",
			"description": "The whole new content: text, or a base64 string when encoding is base64. Leave out when artifactRef is given."
		},
		"encoding": {
			"type": "string",
			"description": "Set to base64 when content is binary data as a base64 string; leave out for text.",
			"enum": ["base64"]
		},
		"artifactRef": {
			"type": "string",
			"description": "Reference of an artifact, as put_artifact gave it, whose content the file gets. Leave out when content is given.",
			"minLength": 1,
			"maxLength": 200
		},
		"mimeType": {
			"type": "string",
			"description": "Media type of the content, such as text/markdown. Optional; it has no effect.",
			"maxLength": 200
		}
	},
	"required": ["path"],
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
		return decode(*in.Content, in.Encoding)
	case in.Content != nil || in.Artifact == "":
		return nil, errcode.New(errcode.InvalidArguments, "write_file: set exactly one of content and artifactRef").With("ok", false)
	case in.Encoding != "":
		return nil, errcode.New(errcode.InvalidArguments, "write_file: encoding describes content; leave it out with artifactRef").With("ok", false)
	}
	call := currentCall(ctx)
	if err := requireTool(f.limits, call.By, "write_file with artifactRef", "get_artifact"); err != nil {
		return nil, err
	}
	a, err := f.artifacts.GetArtifact(ctx, call, in.Artifact)
	if err == nil && a == nil {
		err = errcode.New(errcode.ArtifactNotFound, "your task has no artifact %q; give the reference as put_artifact returned it", in.Artifact).With("ok", false)
	}
	if err != nil {
		return nil, err
	}
	content, _ := a.rawContent()
	return content, nil
}
