package org

// AgentStatus is what an agent is doing. It is derived by runtime.Runtime.AgentStatus
// and never recorded.
type AgentStatus string

// What an agent may be doing. Starting, Thinking and Calling are steps of a turn.
const (
	AgentStarting   AgentStatus = "starting"   // woken; its model was not asked yet
	AgentThinking   AgentStatus = "thinking"   // its model is asked
	AgentCalling    AgentStatus = "calling"    // its tool calls run
	AgentWaiting    AgentStatus = "waiting"    // for a message, or for its task to be resumed
	AgentPaused     AgentStatus = "paused"     // it has work, and goes on when its task, its role or the organization is resumed
	AgentFinished   AgentStatus = "finished"   // its task has ended
	AgentTerminated AgentStatus = "terminated" // removed before its task ended
)
