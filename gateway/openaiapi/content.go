package openaiapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rolecall/rolecall/org"
)

// part is a part of the content of a message.
type part struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL struct {
		URL string `json:"url"`
	} `json:"image_url"`
}

// read returns the text of a message and its pictures. No content is an empty text.
func (m Message) read() (text string, files []org.TaskFile, err error) {
	if len(m.Content) == 0 || string(m.Content) == "null" || json.Unmarshal(m.Content, &text) == nil {
		return text, nil, nil
	}
	var parts []part
	if json.Unmarshal(m.Content, &parts) != nil {
		return "", nil, invalid("messages", "has a message whose content is neither a text nor a list of parts")
	}
	var texts []string
	for _, p := range parts {
		switch p.Type {
		case "text":
			texts = append(texts, p.Text)
		case "image_url":
			file, err := readImage(p.ImageURL.URL, len(files)+1)
			if err != nil {
				return "", nil, err
			}
			files = append(files, file)
		default:
			return "", nil, invalid("messages", "has a part of the type "+quoteRole(p.Type)+"; use text and image_url")
		}
	}
	return strings.Join(texts, "\n"), files, nil
}

// imageTypes are the media types of pictures, and the endings of their names.
var imageTypes = map[string]string{"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}

// readImage reads the n-th picture of a message, a data URL. The gateway fetches no other URL.
func readImage(url string, n int) (org.TaskFile, error) {
	head, data, ok := strings.Cut(url, ",")
	kind, isBase64 := strings.CutSuffix(strings.TrimPrefix(head, "data:"), ";base64")
	ending := imageTypes[kind]
	if !ok || !isBase64 || !strings.HasPrefix(head, "data:") || ending == "" {
		return org.TaskFile{}, invalid("messages", "has a picture that is no data URL of a PNG, JPEG, GIF or WebP in base64")
	}
	content, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return org.TaskFile{}, invalid("messages", "has a picture whose base64 is malformed")
	}
	return org.TaskFile{Name: fmt.Sprintf("picture-%d.%s", n, ending), Data: content}, nil
}
