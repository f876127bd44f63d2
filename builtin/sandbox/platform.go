package sandbox

import (
	"runtime"
	"slices"
	"strings"
)

// platforms lists where jobs can be isolated. The list of denied system calls
// exists for these architectures only.
var platforms = []string{"linux/amd64", "linux/arm64"}

// checkPlatform returns an *UnavailableError if jobs cannot be isolated on the platform
// that this binary was built for.
func checkPlatform() error { return platformError(runtime.GOOS + "/" + runtime.GOARCH) }

// platformError returns an *UnavailableError if jobs cannot be isolated on a platform.
func platformError(platform string) error {
	if slices.Contains(platforms, platform) {
		return nil
	}
	return &UnavailableError{Missing: strings.Join(platforms, " or ") + "; rolecall was built for " + platform}
}
