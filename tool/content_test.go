package tool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/pictures"
	"github.com/rolecall/rolecall/tool"
)

func ExampleContent() {
	chart, err := tool.New("chart", "Draws a chart.", func(context.Context, struct{}) (tool.Result, error) {
		return tool.Result{Text: "The sales of May.", Content: []tool.Content{{Type: tool.ImageContent, Data: pictures.Dot}}}, nil
	}, &tool.Options{Effect: tool.ReadOnly})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := chart.Call(context.Background(), tool.Call{Args: json.RawMessage(`{}`)})
	result.Content = tool.CheckContents(result.Content) // as the gate does
	fmt.Println(string(result.JSON()), err)
	// Output: {"content":[{"type":"text","text":"The sales of May."},{"type":"image","mimeType":"image/png","size":73}]} <nil>
}

// What a content says about itself is replaced by what its bytes show.
func TestCheckContents_BelievesBytesOnly(t *testing.T) {
	svg := []byte(`<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`)
	wave := []byte("RIFF\x24\x00\x00\x00WAVEfmt ")
	for _, c := range []struct {
		name     string
		content  tool.Content
		mimeType string
		note     string // a part of it; "" if there is none
		picture  bool
	}{
		{"a picture", tool.Content{Type: tool.ImageContent, MIMEType: "image/png", Data: pictures.Dot}, "image/png", "", true},
		{"a picture of another type", tool.Content{Type: tool.ImageContent, MIMEType: "image/jpeg", Data: pictures.Dot}, "image/png", "", true},
		{"a picture without a type", tool.Content{Type: tool.ImageContent, Data: pictures.Dot}, "image/png", "", true},
		{"a picture in a resource", tool.Content{Type: tool.ResourceContent, MIMEType: "image/png", Data: pictures.Dot}, "image/png", "", true},
		{"a page", tool.Content{Type: tool.ImageContent, MIMEType: "image/png", Data: []byte("<!DOCTYPE html><script>")}, "text/html; charset=utf-8", "no picture but text/html", false},
		{"a drawing with a script", tool.Content{Type: tool.ImageContent, MIMEType: "image/png", Data: svg}, "text/xml; charset=utf-8", "no picture but text/xml", false},
		{"a drawing", tool.Content{Type: tool.ImageContent, MIMEType: "image/svg+xml", Data: svg}, "text/xml; charset=utf-8", "no picture", false},
		{"a page in a resource that is a picture", tool.Content{Type: tool.ResourceContent, MIMEType: "image/png", Data: []byte("<html>")}, "text/html; charset=utf-8", "no picture", false},
		{"a page in a resource of a type in capitals", tool.Content{Type: tool.ResourceContent, MIMEType: "Image/PNG", Data: []byte("<html>")}, "text/html; charset=utf-8", "no picture", false},
		{"a page in a resource of a type after spaces", tool.Content{Type: tool.ResourceContent, MIMEType: " image/png", Data: []byte("<html>")}, "text/html; charset=utf-8", "no picture", false},
		{"a drawing in a resource of a type with a parameter", tool.Content{Type: tool.ResourceContent, MIMEType: "image/svg+xml;charset=utf-8", Data: svg}, "text/xml; charset=utf-8", "no picture", false},
		{"a picture of a type in capitals", tool.Content{Type: tool.ResourceContent, MIMEType: "IMAGE/PNG", Data: pictures.Dot}, "image/png", "", true},
		{"a picture without bytes", tool.Content{Type: tool.ImageContent, MIMEType: "image/png", Size: 7}, "image/png", "", false},
		{"a sound of a type in capitals", tool.Content{Type: tool.AudioContent, MIMEType: "AUDIO/wav", Data: wave}, "AUDIO/wav", "", false},
		{"a page as a sound", tool.Content{Type: tool.AudioContent, MIMEType: "audio/wav", Data: []byte("<html>")}, "text/html; charset=utf-8", "no sound but text/html", false},
		{"a sound", tool.Content{Type: tool.AudioContent, MIMEType: "audio/wav", Data: wave}, "audio/wav", "", false},
		{"a sound without a type", tool.Content{Type: tool.AudioContent, Data: wave}, "audio/wave", "", false},
		{"a decompression bomb", tool.Content{Type: tool.ImageContent, Data: pictures.PNG(60_000, 60_000)}, "image/png", "60000 x 60000 pixels", false},
		{"a damaged header", tool.Content{Type: tool.ImageContent, Data: pictures.Dot[:20]}, "image/png", "header", false},
		{"no bytes", tool.Content{Type: tool.ImageContent, MIMEType: "image/png", Data: []byte{}}, "text/plain; charset=utf-8", "no picture", false},
		{"a file", tool.Content{Type: tool.ResourceContent, MIMEType: "application/x-mine", Data: []byte{0, 1}}, "application/x-mine", "", false},
		{"a file of a type that is none", tool.Content{Type: tool.ResourceContent, MIMEType: "\x1b[31m", Data: []byte{0, 1}}, "application/octet-stream", "", false},
	} {
		got := tool.CheckContents([]tool.Content{c.content})[0]
		if got.MIMEType != c.mimeType || !strings.Contains(got.Note, c.note) || c.note == "" && got.Note != "" || got.IsPicture() != c.picture {
			t.Errorf("%s: %+v", c.name, got)
		}
		if !bytes.Equal(got.Data, c.content.Data) || got.Size != int64(len(got.Data)) {
			t.Errorf("%s: %d bytes, size %d", c.name, len(got.Data), got.Size)
		}
	}
}

func TestCheckContents_DropsDataOverLimits(t *testing.T) {
	kept := func(contents []tool.Content) (n int) {
		for _, c := range tool.CheckContents(contents) {
			if c.Data != nil {
				n++
			} else if !strings.Contains(c.Note, "not kept") || c.Size == 0 {
				t.Errorf("without data: %+v", c)
			}
		}
		return n
	}
	file := func(size int) tool.Content { return tool.Content{Type: tool.ResourceContent, Data: make([]byte, size)} }
	for name, c := range map[string]struct {
		contents []tool.Content
		want     int
	}{
		"the largest":   {[]tool.Content{file(tool.MaxContentBytes)}, 1},
		"one byte more": {[]tool.Content{file(tool.MaxContentBytes + 1), file(1)}, 1},
		"100 MB":        {[]tool.Content{{Type: tool.ImageContent, Data: make([]byte, 100_000_000)}}, 0},
		"all together":  {[]tool.Content{file(tool.MaxContentBytes), file(tool.MaxContentBytes), file(6 << 20)}, 2},
		"too many":      {make100(file(1)), tool.MaxDataContents},
	} {
		if got := kept(c.contents); got != c.want {
			t.Errorf("%s: %d are kept, want %d", name, got, c.want)
		}
	}
}

// make100 repeats a content.
func make100(c tool.Content) []tool.Content {
	list := make([]tool.Content, 100)
	for i := range list {
		list[i] = c
	}
	return list
}

func TestCheckContents_CleansLabels(t *testing.T) {
	const tags, escape = "\U000e0041\U000e0042", "\x1b]0;x\x07"
	got := tool.CheckContents([]tool.Content{{
		Type: tool.LinkContent, URI: "file:///a" + tags, Name: "a\u202eb" + escape, Title: strings.Repeat("t", 1000), Description: "two\nlines", MIMEType: "text/plain\nx",
		Size: -1, Ref: "artifact:forged", Note: "forged",
	}})[0]
	want := tool.Content{Type: tool.LinkContent, URI: "file:///a", Name: "ab]0;x", Title: got.Title, Description: "two lines"}
	if diff := cmp.Diff(want, got); diff != "" || len(got.Title) > 300 {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestResult_JSONDescribesContents(t *testing.T) {
	image := tool.Content{Type: tool.ImageContent, MIMEType: "image/png", Size: 1, Data: []byte("x"), Ref: "artifact:1"}
	const described = `{"type":"image","mimeType":"image/png","size":1,"artifactRef":"artifact:1"}`
	failed := tool.Failure("draw", errcode.New(errcode.ToolExecutionFailed, "no ink"))
	failed.Content = []tool.Content{image}
	for _, c := range []struct {
		result tool.Result
		want   string
		parts  int
	}{
		{tool.Result{Text: "t"}, `"t"`, 1},
		{tool.Result{Structured: []byte(`{"a":1}`)}, `{"a":1}`, 1},
		{tool.Result{Content: []tool.Content{image}}, `{"content":[` + described + `]}`, 1},
		{tool.Result{Text: "t", Content: []tool.Content{image}}, `{"content":[{"type":"text","text":"t"},` + described + `]}`, 2},
		{tool.Result{Structured: []byte(`[1]`), Content: []tool.Content{image}}, `{"content":[` + described + `],"structuredContent":[1]}`, 2},
		{tool.Result{Structured: []byte(`[1]`), Content: []tool.Content{image, {Type: tool.TextContent, Text: "t"}}}, `{"content":[` + described + `,{"type":"text","text":"t"}],"structuredContent":[1]}`, 2},
		{failed, `{"content":[` + described + `],"error":"tool_execution_failed","message":"no ink","toolName":"draw"}`, 2},
	} {
		if got := string(c.result.JSON()); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
		if got := c.result.Parts(); len(got) != c.parts {
			t.Errorf("%s: the parts are %+v", c.want, got)
		}
	}
}
