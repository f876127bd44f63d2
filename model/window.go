package model

// WindowUsage is how much of a model's context window a conversation takes, in
// tokens. A Window of 0 or less is unknown; then nothing of it counts as used.
type WindowUsage struct{ Used, Window int }

// Share returns the used share of the window; 1 is full.
func (u WindowUsage) Share() float64 {
	if u.Window <= 0 {
		return 0
	}
	return float64(u.Used) / float64(u.Window)
}

// WindowLevel classifies the usage of a context window.
type WindowLevel string

// The levels of usage. From WindowExceeded on, the next answer may not fit.
const (
	WindowNormal   WindowLevel = "normal"
	WindowWarning  WindowLevel = "warning"
	WindowCritical WindowLevel = "critical"
	WindowExceeded WindowLevel = "exceeded"
)

// The shares at which the levels above WindowNormal begin.
const (
	WarningShare  = 0.7
	CriticalShare = 0.9
	ExceededShare = 0.95
)

// Level returns the level of the usage.
func (u WindowUsage) Level() WindowLevel {
	switch share := u.Share(); {
	case share >= ExceededShare:
		return WindowExceeded
	case share >= CriticalShare:
		return WindowCritical
	case share >= WarningShare:
		return WindowWarning
	}
	return WindowNormal
}
