package provider

import (
	"bufio"
	"bytes"
	"io"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/model/provider/endpoint"
)

// read decodes an answer: a stream if one was requested and the server supports it,
// else one document.
func (r *ResponseReader) read(body io.Reader, d Decoder) error {
	if r.model.config.Stream {
		document, all, err := isDocument(body)
		if err != nil {
			return err
		}
		if !document {
			return r.readStream(all, d)
		}
		body = all
	}
	return r.readDocument(body, d)
}

// isDocument reports whether a body that should be a stream is one JSON document.
// Servers without streaming answer so, and servers that fail before the stream
// starts. It returns a reader of the rest of the body.
func isDocument(body io.Reader) (bool, io.Reader, error) {
	const maxSpace = 64 << 10 // white space before the first character
	r := bufio.NewReaderSize(body, 16)
	for range maxSpace {
		first, err := r.Peek(1)
		switch {
		case err == io.EOF:
			return false, r, nil
		case err != nil:
			return false, r, err
		case first[0] != '\n' && first[0] != '\r' && first[0] != ' ':
			return first[0] == '{', r, nil
		}
		r.Discard(1)
	}
	return false, r, model.PermanentError(errcode.LLMCallFailed, nil, "the model's answer begins with more than %d bytes of white space", maxSpace)
}

func (r *ResponseReader) readDocument(body io.Reader, d Decoder) error {
	data, err := endpoint.ReadAll(body)
	if err != nil {
		return err
	}
	doc, err := r.parseObject(data)
	if err != nil {
		return err
	}
	r.Ended = true
	return d.DecodeDocument(doc)
}

// doneMarker is the data of the last event of many streams; it is not JSON.
var doneMarker = []byte("[DONE]")

func (r *ResponseReader) readStream(body io.Reader, d Decoder) error {
	events := endpoint.ReadEvents
	if r.model.protocol.Events != nil {
		events = r.model.protocol.Events
	}
	for event, err := range events(body) {
		if err != nil {
			return err
		}
		switch data := bytes.TrimSpace(event.Data); {
		case len(data) == 0:
			continue
		case bytes.Equal(data, doneMarker):
			r.Ended = true
		default:
			if err := r.decodeEvent(data, d); err != nil {
				return err
			}
		}
		if r.Ended || r.stopped {
			break
		}
	}
	return nil
}

func (r *ResponseReader) decodeEvent(data []byte, d Decoder) error {
	doc, err := r.parseObject(data)
	if err != nil {
		return err
	}
	return d.DecodeEvent(doc)
}

// parseObject parses data, which must be a JSON object.
func (r *ResponseReader) parseObject(data []byte) (gjson.Result, error) {
	text := chat.CleanText(string(data))
	doc := gjson.Parse(text)
	if !doc.IsObject() || !chat.ValidJSON(text) {
		return doc, r.TransientError("sent data that is not a JSON object")
	}
	return doc, nil
}
