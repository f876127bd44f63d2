package notify

import (
	"fmt"
	"strings"
	"time"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
)

// Limits of texts in a message to Slack, which allows 3,000 characters, in bytes.
const (
	maxSlackText = 2000
	maxName      = 200
)

// slackBody is a message of an incoming webhook of Slack. Texts of agents and callers are in
// elements of rich text, which Slack shows as they are.
type slackBody struct {
	Text   string       `json:"text"` // for notes outside of the chat; Slack reads it as markup
	Blocks []slackBlock `json:"blocks"`
	Unfurl bool         `json:"unfurl_links"`
	Media  bool         `json:"unfurl_media"`
}

// slackBlock is a block of rich text.
type slackBlock struct {
	Type     string         `json:"type"`
	Elements []slackSection `json:"elements"`
}

// slackSection is a paragraph, or text of fixed width.
type slackSection struct {
	Type     string      `json:"type"`
	Elements []slackText `json:"elements"`
}

// slackText is a text or a link.
type slackText struct {
	Type  string      `json:"type"`
	Text  string      `json:"text"`
	URL   string      `json:"url,omitempty"`
	Style *slackStyle `json:"style,omitempty"`
}

type slackStyle struct {
	Bold bool `json:"bold"`
}

// slackMessage returns a message in the format of Slack.
func slackMessage(m message) slackBody {
	title, d := titleOf(m), m.Data
	lines := []slackText{{Type: "text", Text: title + "\n", Style: &slackStyle{Bold: true}}}
	add := func(name, value string) {
		if value != "" {
			lines = append(lines, slackText{Type: "text", Text: name + ": " + oneLine(value, maxSlackText) + "\n"})
		}
	}
	add("Role", d.Role)
	add("For", d.For)
	add("Needs", strings.Join(d.Needs, "; "))
	add("Reason", d.Reason)
	if d.Until != nil {
		add("Until", d.Until.UTC().Format(time.RFC3339))
	}
	add("Request", d.ID)
	sections := []slackSection{{Type: "rich_text_section", Elements: lines}}
	if args := string(d.Args) + d.ArgsText; args != "" {
		sections = append(sections, slackSection{Type: "rich_text_preformatted", Elements: []slackText{{Type: "text", Text: textutil.Truncate(textutil.SanitizeLines(args), maxSlackText)}}})
	}
	if d.Link != "" {
		sections = append(sections, slackSection{Type: "rich_text_section", Elements: []slackText{{Type: "link", URL: d.Link, Text: "Open the request"}}})
	}
	return slackBody{Text: escapeSlack(title), Blocks: []slackBlock{{Type: "rich_text", Elements: sections}}}
}

// titleOf returns a message in one line.
func titleOf(m message) string {
	d, tool := m.Data, oneLine(m.Data.Tool, maxName)
	switch m.Type {
	case journal.ApprovalRequested{}.EventType():
		return fmt.Sprintf("A call of %s waits for approval", tool)
	case journal.ApprovalEscalated{}.EventType():
		return fmt.Sprintf("A call of %s waits long: the approval of %s is enough now", tool, oneLine(d.To, maxName))
	}
	text := fmt.Sprintf("A call of %s: %s", tool, d.Outcome)
	if d.By != "" {
		text += " by " + oneLine(d.By, maxName)
	}
	if d.Override {
		text += ", in place of the approvers"
	}
	return text
}

// oneLine returns the beginning of a text that cannot look like further lines of the message.
func oneLine(text string, n int) string { return textutil.OneLine(textutil.Sanitize(text), n) }

// escapeSlack returns a text in the markup of Slack that mentions nobody and links nothing.
func escapeSlack(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}
