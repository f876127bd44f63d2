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

// read takes in an answer: pieces when they were asked for, one document when
// they were not or the server does not know how.
func (r *ResponseReader) read(body io.Reader, d Decoder) error {
	if r.model.config.Stream {
		document, all, err := isDocument(body)
		if err != nil {
			return err
		}
		if !document {
			return r.stream(all, d)
		}
		body = all
	}
	return r.document(body, d)
}

// isDocument says whether a body that should be a stream is one document: so
// answer servers that know no streams, and those that fail before they begin.
func isDocument(body io.Reader) (bool, io.Reader, error) {
	const most = 64 << 10 // of space before anything else
	r := bufio.NewReaderSize(body, 16)
	for range most {
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
	return false, r, model.Permanent(errcode.LLMCallFailed, nil, "the model's answer begins with more than %d bytes of nothing", most)
}

func (r *ResponseReader) document(body io.Reader, d Decoder) error {
	data, err := endpoint.All(body)
	if err != nil {
		return err
	}
	doc, err := r.parse(data)
	if err != nil {
		return err
	}
	r.Ended = true
	return d.Document(doc)
}

// end is what ends many a stream; it is no JSON.
var end = []byte("[DONE]")

func (r *ResponseReader) stream(body io.Reader, d Decoder) error {
	for event, err := range endpoint.Events(body) {
		if err != nil {
			return err
		}
		switch data := bytes.TrimSpace(event.Data); {
		case len(data) == 0:
			continue
		case bytes.Equal(data, end):
			r.Ended = true
		default:
			if err := r.event(data, d); err != nil {
				return err
			}
		}
		if r.Ended || r.stopped {
			break
		}
	}
	return nil
}

func (r *ResponseReader) event(data []byte, d Decoder) error {
	doc, err := r.parse(data)
	if err != nil {
		return err
	}
	return d.Event(doc)
}

// parse reads what the provider sent as an object.
func (r *ResponseReader) parse(data []byte) (gjson.Result, error) {
	text := chat.Clean(string(data))
	doc := gjson.Parse(text)
	if !doc.IsObject() || !chat.Valid(text) {
		return doc, r.Transient("sent something that is no JSON object")
	}
	return doc, nil
}
