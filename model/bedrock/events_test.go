package bedrock_test

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

// prelude returns the beginning of a message with these lengths and a valid checksum.
func prelude(total, headers uint32) string {
	b := binary.BigEndian.AppendUint32(nil, total)
	b = binary.BigEndian.AppendUint32(b, headers)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

// A damaged message, or one with impossible lengths, is an error before its memory is
// allocated.
func TestEvents_DamagedMessages(t *testing.T) {
	whole := events(text + stop("end_turn"))
	flipped := func(at int) string { return whole[:at] + string(whole[at]^1) + whole[at+1:] }
	for name, stream := range map[string]string{
		"checksum of the lengths": flipped(9),
		"length of the headers":   flipped(7),
		"a header":                flipped(20),
		"length of a name":        whole[:12] + "\xff" + whole[13:],
		"the payload":             flipped(100),
		"a length by damage":      "\xff" + whole[1:],
		"headers too long":        prelude(1<<20, 64<<10+1),
		"headers beyond the end":  prelude(100, 90),
		"length below the frame":  prelude(15, 0),
		"no length":               prelude(0, 0),
	} {
		t.Run(name, func(t *testing.T) {
			x := suite.Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), 200, stream+strings.Repeat("\x00", 100))
			providertest.WantError(t, x.Err, errcode.LLMCallFailed, true, "event streams, or is damaged")
		})
	}
}

// The error for a message that is too long says so. No memory is allocated for it.
func TestEvents_LongMessage(t *testing.T) {
	for _, length := range []uint32{16<<20 + 1, 1<<32 - 1} {
		x := suite.Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), 200, prelude(length, 0)+strings.Repeat("\x00", 100))
		providertest.WantError(t, x.Err, errcode.LLMCallFailed, true, "an event of more than 16777216 bytes")
	}
}

// A message without a payload, or of a type that is not known, is ignored.
func TestEvents_UnknownMessages(t *testing.T) {
	stream := message("", ":event-type", "initial-response", ":message-type", "event") + message(`{"a":1}`) + events(text+stop("end_turn"))
	x := suite.Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), 200, stream)
	if x.Err != nil || x.Answer.Text != "So far" {
		t.Errorf("got %+v (%v)", x.Answer, x.Err)
	}
}

// Any message with valid checksums becomes a part of an answer or one *model.Error.
func FuzzEvents(f *testing.F) {
	for line := range strings.Lines(thoughtful) {
		if kind, payload, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			f.Add("event", ":event-type", kind, payload)
		}
	}
	f.Add("exception", ":exception-type", "throttlingException", `{"message":"m"}`)
	f.Add("error", ":error-code", "InternalError", "")
	f.Add("event", ":event-type", `messageStop":{},"`, `{},"metadata":{}`)
	f.Fuzz(func(t *testing.T, kind, header, name, payload string) {
		if header == "" || len(header) > 255 {
			t.Skip("no header has this name")
		}
		stream := message(payload, ":message-type", kind, header, name) + events(text+stop("end_turn"))
		m := suite.New(provider.Config{Model: suite.Model, Stream: true, Client: providertest.Client(func(string, string) string { return stream })})
		_, answer, err := providertest.Collect(t, m, providertest.HelloRequest())
		if _, ok := errors.AsType[*model.Error](err); err != nil && !ok {
			t.Errorf("not a *model.Error: %v", err)
		}
		if err == nil && !strings.HasSuffix(answer.Text, "So far") && answer.Stop == "" {
			t.Errorf("got %+v", answer)
		}
	})
}
