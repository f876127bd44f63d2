package gateway_test

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

func TestCancel_RunningTask(t *testing.T) {
	reached, release := make(chan struct{}), make(chan struct{})
	f := newFixture(t, func(model.Request) model.Answer {
		close(reached)
		<-release
		return gatewaytest.EndAnswer("late")
	})
	id := f.StartTask(t, "go")
	<-reached
	task, err := f.LocalClient().CancelTask(t.Context(), string(id), "no longer needed")
	close(release)
	if err != nil || task.Status != org.Cancelled || !strings.Contains(task.Error.Message, "no longer needed") {
		t.Fatalf("got %+v, %v", task, err)
	}
	again, err := f.LocalClient().CancelTask(t.Context(), string(id), "")
	if err != nil || again.Error.Message != task.Error.Message {
		t.Errorf("cancelled again: %+v, %v", again, err)
	}
	if list := gatewaytest.CollectAll(t, f.LocalClient().ListTasks(t.Context(), "cancelled")); len(list) != 1 || list[0].Text != "go" {
		t.Errorf("cancelled tasks: %+v", list)
	}
}
