package gateway_test

import (
	"reflect"
	"testing"

	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
)

// The shapes that wire repeats, so that clients need not import the runtime,
// have the same JSON. Their Go fields agree because they can be converted.
func TestWireShapes_SameJSONAsRuntime(t *testing.T) {
	for _, pair := range [][2]any{
		{wire.Artifact{}, runtime.Artifact{}}, {wire.SweepResult{}, runtime.SweepResult{}}, {wire.SentMessage{}, org.SendResult{}},
	} {
		shape, source := reflect.TypeOf(pair[0]), reflect.TypeOf(pair[1])
		for i := range source.NumField() {
			if got, want := shape.Field(i).Tag, source.Field(i).Tag; got != want {
				t.Errorf("%s.%s: tag %s, want %s", shape, shape.Field(i).Name, got, want)
			}
		}
	}
}
