package bedrock

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/rolecall/rolecall/model"
)

// A stream that is too long is an error, as with other providers. It is not taken for one that was cut off.
func TestReadEvents_LongStream(t *testing.T) {
	var message bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&message, eventstream.Message{Payload: make([]byte, maxMessage-messageFrame)}); err != nil {
		t.Fatal(err)
	}
	var body []io.Reader
	for range maxStream/maxMessage + 1 {
		body = append(body, bytes.NewReader(message.Bytes()))
	}
	var got error
	for _, err := range readEvents(io.MultiReader(body...)) {
		got = err
	}
	failure, ok := errors.AsType[*model.Error](got)
	if !ok || failure.Retryable || !strings.Contains(got.Error(), "more than 268435456 bytes") {
		t.Errorf("got %v", got)
	}
}
