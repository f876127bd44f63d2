package sandbox_test

import (
	"errors"
	"testing"

	"github.com/rolecall/rolecall/builtin/sandbox"
)

func TestPlatform_RefusesWithoutSystemCallList(t *testing.T) {
	for _, platform := range []string{"linux/386", "linux/arm", "linux/riscv64", "darwin/arm64", "freebsd/amd64", "windows/amd64", ""} {
		missing, ok := errors.AsType[*sandbox.UnavailableError](sandbox.PlatformError(platform))
		if !ok || missing.Error() != "no sandbox: linux/amd64 or linux/arm64; rolecall was built for "+platform {
			t.Errorf("%s: got %v", platform, missing)
		}
	}
	for _, platform := range []string{"linux/amd64", "linux/arm64"} {
		if err := sandbox.PlatformError(platform); err != nil {
			t.Errorf("%s: got %v", platform, err)
		}
	}
}
