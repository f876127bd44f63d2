package tool

import (
	"cmp"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/rolecall/rolecall/internal/picture"
	"github.com/rolecall/rolecall/internal/textutil"
)

// ContentType is the type of a Content, in the words of the Model Context Protocol.
type ContentType string

// The types of contents.
const (
	TextContent     ContentType = "text"          // Text
	ImageContent    ContentType = "image"         // Data and MIMEType
	AudioContent    ContentType = "audio"         // Data and MIMEType
	ResourceContent ContentType = "resource"      // URI, and Text or Data: a resource that is part of the result
	LinkContent     ContentType = "resource_link" // URI and Name: a resource elsewhere
)

// Content is a part of a result: a text, a picture, a sound, or a resource.
//
// Its JSON is the description that models and the record have. It never contains Data: what
// a call returns is stored as an artifact, whose reference it has.
type Content struct {
	Type        ContentType `json:"type"`
	Text        string      `json:"text,omitempty"`
	URI         string      `json:"uri,omitempty"`
	Name        string      `json:"name,omitempty"`
	Title       string      `json:"title,omitempty"`
	Description string      `json:"description,omitempty"`
	MIMEType    string      `json:"mimeType,omitempty"`
	Size        int64       `json:"size,omitempty"` // bytes of the data, or of what a link refers to; 0 if unknown
	Data        []byte      `json:"-"`

	// Set after the call, whatever the tool returned.
	Ref  string `json:"artifactRef,omitempty"` // the artifact with Data; "" if it is not stored
	Note string `json:"note,omitempty"`        // why Data is missing, or is not shown as what Type says
}

// Limits of the contents of a result.
const (
	MaxContentBytes = 10_000_000 // of the Data of one content
	MaxResultData   = 16 << 20   // bytes of the Data of all contents
	MaxDataContents = 64         // contents with Data
)

// Limits of the texts that describe a content, in bytes.
const (
	maxURI      = 4 << 10
	maxLabel    = 256 // of a name, a title or a media type
	maxDescribe = 4 << 10
)

// IsPicture reports whether the content is shown as a picture. It holds only for contents
// that have passed CheckContents.
func (c *Content) IsPicture() bool {
	return c.Note == "" && c.Size > 0 && (c.Type == ImageContent || c.Type == ResourceContent) && picture.IsSupported(c.MIMEType)
}

// CheckContents returns contents as they may be shown and stored. What a content says about
// itself is not trusted:
//
//   - The type of a picture is the one that its bytes show. A picture with more than
//     8000 pixels in one direction, and what is no picture, keeps its Data and has a Note.
//   - Data over one of the limits is dropped, and a Note says so.
//   - Names, URIs and descriptions are shortened and have no invisible characters.
func CheckContents(contents []Content) []Content {
	if len(contents) == 0 {
		return nil
	}
	checked := make([]Content, 0, len(contents))
	left, count := MaxResultData, MaxDataContents
	for _, c := range contents {
		c.Ref, c.Note = "", ""
		c.cleanLabels()
		if c.Data != nil {
			c.Size = int64(len(c.Data))
			if c.limitData(left, count); c.Data != nil {
				left, count = left-len(c.Data), count-1
			}
		}
		checked = append(checked, c)
	}
	return checked
}

// cleanLabels makes the texts around the data short and visible.
func (c *Content) cleanLabels() {
	line := func(text string, n int) string { return textutil.OneLine(textutil.RemoveInvisible(text), n) }
	c.Type = ContentType(line(string(c.Type), maxLabel))
	c.URI, c.Name, c.Title = line(c.URI, maxURI), line(c.Name, maxLabel), line(c.Title, maxLabel)
	c.Description = line(c.Description, maxDescribe)
	c.Size = max(0, c.Size)
	if c.Data == nil && c.Type != LinkContent {
		c.Size = 0 // there is nothing of this size
	}
	if _, _, err := mime.ParseMediaType(c.MIMEType); err != nil || len(c.MIMEType) > maxLabel {
		c.MIMEType = ""
	}
}

// isOf reports whether the media type is of a family, such as image, however it is written.
func (c *Content) isOf(family string) bool {
	kind, _, err := mime.ParseMediaType(c.MIMEType)
	return err == nil && strings.HasPrefix(kind, family+"/")
}

// limitData checks the data and its type. left and count are what the result may still have.
func (c *Content) limitData(left, count int) {
	switch {
	case len(c.Data) > MaxContentBytes:
		c.dropData(fmt.Sprintf("not kept: it has more than %d bytes", MaxContentBytes))
	case len(c.Data) > left || count == 0:
		c.dropData(fmt.Sprintf("not kept: the result has more than %d bytes or %d parts of data", MaxResultData, MaxDataContents))
	case c.Type == ImageContent || c.isOf("image"):
		c.setPictureType()
	case c.Type == AudioContent:
		c.setAudioType()
	default:
		c.MIMEType = cmp.Or(c.MIMEType, http.DetectContentType(c.Data))
	}
}

// dropData removes the data.
func (c *Content) dropData(why string) { c.Data, c.Note = nil, why }

// setPictureType sets the media type that the bytes of a picture show.
func (c *Content) setPictureType() {
	info, err := picture.Inspect(c.Data)
	if err == nil {
		c.MIMEType = info.MediaType
		return
	}
	c.MIMEType, c.Note = http.DetectContentType(c.Data), "not shown: "+err.Error()
}

// setAudioType sets the media type that the bytes of a sound show. Text or a picture is not
// shown as a sound: it could be a document that acts where it is opened.
func (c *Content) setAudioType() {
	kind := http.DetectContentType(c.Data)
	family, _, _ := strings.Cut(kind, "/")
	switch {
	case family == "text" || family == "image":
		c.MIMEType, c.Note = kind, "not shown: it is no sound but "+kind
	case !c.isOf("audio"):
		c.MIMEType = kind
	}
}

// textBytes returns the size of what a content says in text.
func (c *Content) textBytes() int {
	const around = 64 // names of fields
	return around + len(c.Type) + len(c.Text) + len(c.URI) + len(c.Name) + len(c.Title) + len(c.Description) + len(c.MIMEType)
}

// TextBytes returns the size of the texts and the JSON in the result, in bytes.
func (r Result) TextBytes() int {
	n := len(r.Text) + len(r.Structured)
	for i := range r.Content {
		n += r.Content[i].textBytes()
	}
	return n
}

// DataBytes returns the size of the Data of all contents, in bytes.
func (r Result) DataBytes() (n int) {
	for i := range r.Content {
		n += len(r.Content[i].Data)
	}
	return n
}

// Parts returns what a client is shown, in order: the contents, after a text unless there is
// one among them. The text is Text, or Structured as JSON.
func (r Result) Parts() []Content {
	text := cmp.Or(r.Text, string(r.Structured))
	if r.Text == "" && r.hasText() || len(r.Content) > 0 && text == "" {
		return r.Content
	}
	return append([]Content{{Type: TextContent, Text: text}}, r.Content...)
}

// hasText reports whether one of the contents is a text.
func (r Result) hasText() bool {
	for i := range r.Content {
		if r.Content[i].Type == TextContent {
			return true
		}
	}
	return false
}

// contentJSON returns a result with contents as JSON: a failure with the field content, or an
// object with the fields content and structuredContent.
func (r Result) contentJSON() json.RawMessage {
	contents := r.Content
	if r.Text != "" {
		contents = append([]Content{{Type: TextContent, Text: r.Text}}, contents...)
	}
	list, _ := json.Marshal(contents) // texts and numbers always marshal
	var failure map[string]json.RawMessage
	if r.IsError && json.Unmarshal(r.Structured, &failure) == nil && failure != nil {
		failure["content"] = list
		doc, _ := json.Marshal(failure) // its parts are valid
		return doc
	}
	doc, _ := json.Marshal(struct {
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structuredContent,omitempty"`
	}{list, r.Structured})
	return doc
}
