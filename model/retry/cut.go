package retry

import (
	"fmt"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

// minCutTokens is the size of a request from which on a server's count is compared with it.
const minCutTokens = 512

// cutNote returns a note, once, if a server counts far fewer tokens than a request has.
// The server has cut the conversation to its own context, or dropped the tools. cutNote
// returns "" if the server counts no tokens.
func (m *Model) cutNote(r model.Request, counted int) string {
	if counted == 0 || m.cutNoted.Load() {
		return ""
	}
	least := chat.LeastTokens(r, counted)
	if least < minCutTokens || m.cutNoted.Swap(true) {
		return ""
	}
	m.config.Log.Warn("the server of a model counts fewer tokens than the request has", "model", m.config.Name, "agent", r.Self.ID, "counted", counted, "least", least)
	return fmt.Sprintf("model %q read %d tokens of a request of more than %d: its server cuts conversations, or drops tools; set contextWindow to what the server is started with, for Ollama OLLAMA_CONTEXT_LENGTH (rolecall model test asks it)", m.config.Name, counted, least)
}
