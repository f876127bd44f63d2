package builtin

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/strictjson"
)

// maxInline is the most bytes of text that an answer shows to an agent; more
// would fill its conversation.
const maxInline = 256 << 10

// readBody reads an answer to its end, unpacked, or to the first byte over
// the limit, which is an error: half a document reads like a whole one.
func readBody(answer *http.Response, most int64) ([]byte, error) {
	if answer.Body == http.NoBody {
		return nil, nil
	}
	if answer.ContentLength > most {
		return nil, tooLarge(most)
	}
	body := http.MaxBytesReader(nil, answer.Body, most)
	if packing := strings.ToLower(answer.Header.Get("Content-Encoding")); packing == "gzip" || packing == "x-gzip" {
		plain, err := gzip.NewReader(body)
		if errors.Is(err, io.EOF) { // packed nothing
			return nil, nil
		}
		if err != nil {
			return nil, cut(err, most)
		}
		body = http.MaxBytesReader(nil, plain, most)
		answer.Header.Del("Content-Encoding")
		answer.Header.Del("Content-Length")
	}
	data, err := io.ReadAll(body)
	return data, cut(err, most)
}

func cut(err error, most int64) error {
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return tooLarge(most)
	}
	return err
}

func tooLarge(most int64) error {
	return errcode.New(errcode.ResultTooLarge, "http_request: the body of the answer is over the limit of %d bytes; ask for less: a narrower query, or a part with the header range", most).
		With("limit", most)
}

// joinHeaders gives headers as a model reads them.
func joinHeaders(h http.Header) map[string]string {
	out := make(map[string]string, len(h))
	for name, values := range h {
		out[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	return out
}

// storedBody stands for a body that was kept as an artifact.
type storedBody struct {
	Ref       string `json:"artifactRef"`
	Size      int    `json:"size"`
	MediaType string `json:"mediaType"`
}

// content gives a body as the model reads it: a JSON value, text, or where it
// is kept. Who has no task to keep it in gets all of it.
func (r *requests) content(ctx context.Context, header http.Header, data []byte, h httpHop) (body json.RawMessage, coding string, err error) {
	mediaType, charset := mediaOf(header, data)
	text, isText := textOf(data, mediaType, charset)
	agent := caller(ctx).By.Kind == identity.Agent
	switch {
	case agent && !(isText && len(text) <= maxInline):
		body, err = r.keep(ctx, mediaType, data, h)
	case !isText:
		coding = inBase64
		body, err = json.Marshal(base64.StdEncoding.EncodeToString(data))
	case isJSON(mediaType) && isValue(text):
		body = json.RawMessage(text)
	default:
		body, err = json.Marshal(text)
	}
	return body, coding, err
}

// keep puts a body into an artifact of the caller's task.
func (r *requests) keep(ctx context.Context, mediaType string, data []byte, h httpHop) (json.RawMessage, error) {
	meta, err := json.Marshal(map[string]string{"url": h.url.String()})
	if err != nil {
		return nil, err
	}
	ref, err := r.store.PutArtifact(ctx, caller(ctx), Artifact{Type: mediaType, Data: data, Meta: meta})
	if err != nil {
		return nil, err
	}
	return json.Marshal(storedBody{ref, len(data), mediaType})
}

// mediaOf gives the media type and charset that an answer declares, or the
// type its first bytes show when it declares none.
func mediaOf(header http.Header, data []byte) (mediaType, charset string) {
	declared := header.Get("Content-Type")
	if declared == "" {
		declared = http.DetectContentType(data)
	}
	mediaType, params, err := mime.ParseMediaType(declared)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) || !strings.Contains(mediaType, "/") || len(mediaType) > 100 {
		return "application/octet-stream", ""
	}
	return mediaType, strings.ToLower(params["charset"])
}

func isJSON(mediaType string) bool {
	return mediaType == "application/json" || mediaType == "text/json" || strings.HasSuffix(mediaType, "+json")
}

// isValue says whether text is JSON that the gate passes on inside an answer.
func isValue(text string) bool {
	return strictjson.Check([]byte(text), nil) == nil && strictjson.Check([]byte("["+text+"]"), nil) == nil
}

// textOf gives data as text in UTF-8; false when it is none.
func textOf(data []byte, mediaType, charset string) (string, bool) {
	if coding := charsets[charset]; coding != nil && isTextual(mediaType) {
		decoded, err := coding.NewDecoder().Bytes(data)
		if err != nil || bytes.ContainsRune(decoded, utf8.RuneError) {
			return "", false
		}
		data = decoded
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	return string(data), utf8.Valid(data) && !slices.Contains(data, 0)
}

// charsets are those still met beside UTF-8.
var charsets = map[string]encoding.Encoding{
	"iso-8859-1":   charmap.Windows1252, // as browsers read it
	"latin1":       charmap.Windows1252,
	"windows-1252": charmap.Windows1252,
	"utf-16":       unicode.UTF16(unicode.LittleEndian, unicode.UseBOM),
	"utf-16le":     unicode.UTF16(unicode.LittleEndian, unicode.UseBOM),
	"utf-16be":     unicode.UTF16(unicode.BigEndian, unicode.UseBOM),
}

// isTextual says whether a charset means something for a media type.
func isTextual(mediaType string) bool {
	return strings.HasPrefix(mediaType, "text/") || isJSON(mediaType) || strings.HasSuffix(mediaType, "xml") || strings.HasSuffix(mediaType, "javascript")
}
