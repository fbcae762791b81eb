PRAGMA foreign_keys = OFF;
BEGIN TRANSACTION;
CREATE TABLE agno_runs (
	run_id VARCHAR NOT NULL, 
	session_id VARCHAR NOT NULL, 
	run_type VARCHAR NOT NULL, 
	agent_id VARCHAR, 
	team_id VARCHAR, 
	workflow_id VARCHAR, 
	user_id VARCHAR, 
	parent_run_id VARCHAR, 
	status VARCHAR, 
	run_index BIGINT, 
	run_data JSON NOT NULL, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT, 
	PRIMARY KEY (run_id), 
	FOREIGN KEY(session_id) REFERENCES agno_sessions (session_id) ON DELETE CASCADE
);
INSERT INTO "agno_runs" VALUES('96917569-2c16-42d7-92cd-e2054e919387','river-1','agent','smart-rosalind-eebaca87',NULL,NULL,NULL,NULL,'COMPLETED',0,'{"run_id": "96917569-2c16-42d7-92cd-e2054e919387", "agent_id": "smart-rosalind-eebaca87", "session_id": "river-1", "content": "Ask the gauge.Once more.The Elbe is 2.1 m deep in Dresden.", "content_type": "str", "model_provider_data": {"id": "r"}, "model": "script", "model_provider": "OpenAI", "session_state": {}, "created_at": 1795982242, "status": "COMPLETED", "metrics": {"time_to_first_token": 0.9512749339992297, "duration": 1.0879866409959504}, "messages": [{"id": "ee60cbe6-d8e8-4a4f-9a6c-8ebe1cbc9007", "content": "You know rivers.", "from_history": false, "stop_after_tool_call": false, "role": "system", "created_at": 1795982242}, {"id": "18d25416-10b7-4f05-8dc8-fe83fd9e96d1", "content": "How deep is the Elbe in Dresden?", "from_history": false, "stop_after_tool_call": false, "role": "user", "created_at": 1795982242}, {"id": "e384a5ba-34af-453d-8838-4404422eaf66", "content": "Ask the gauge.", "from_history": false, "stop_after_tool_call": false, "role": "assistant", "tool_calls": [{"id": "c1", "function": {"arguments": "{\"river\": \"Elbe\"}", "name": "depth"}, "type": "function"}], "provider_data": {"id": "r"}, "metrics": {"duration": 0.32803470899671083, "time_to_first_token": 0.32803470899671083}, "created_at": 1795982242}, {"id": "9b2d1b02-b9b2-4c0e-8bc8-97df178d9eb1", "content": "name a place", "from_history": false, "stop_after_tool_call": false, "role": "tool", "tool_call_id": "c1", "tool_name": "depth", "tool_args": {"river": "Elbe"}, "tool_call_error": true, "created_at": 1795982242}, {"id": "140571d5-2d8b-4865-885e-6a1540357e5c", "content": "Once more.", "from_history": false, "stop_after_tool_call": false, "role": "assistant", "tool_calls": [{"id": "c2", "function": {"arguments": "{\"river\": \"Elbe\", \"place\": \"Dresden\"}", "name": "depth"}, "type": "function"}], "provider_data": {"id": "r"}, "metrics": {"duration": 0.01145652500417782, "time_to_first_token": 0.01145652500417782}, "created_at": 1795982242}, {"id": "3566d84a-a917-4ebc-acce-b97869ec705e", "content": "2.1 m", "from_history": false, "stop_after_tool_call": false, "role": "tool", "tool_call_id": "c2", "tool_name": "depth", "tool_args": {"river": "Elbe", "place": "Dresden"}, "tool_call_error": false, "created_at": 1795982242}, {"id": "fb8bbafe-268c-4140-9f0d-012c9b84d54b", "content": "The Elbe is 2.1 m deep in Dresden.", "from_history": false, "stop_after_tool_call": false, "role": "assistant", "provider_data": {"id": "r"}, "metrics": {"duration": 0.007505347995902412, "time_to_first_token": 0.007505347995902412}, "created_at": 1795982242}], "tools": [{"tool_call_id": "c1", "tool_name": "depth", "tool_args": {"river": "Elbe"}, "tool_call_error": true, "result": "name a place", "metrics": {"start_time": 1795982242.762042, "end_time": 1795982242.768299, "duration": 0.006257165005081333}, "child_run_id": null, "stop_after_tool_call": false, "created_at": 1795982242, "requires_confirmation": null, "confirmed": null, "confirmation_note": null, "requires_user_input": null, "user_input_schema": null, "user_feedback_schema": null, "answered": null, "external_execution_required": null, "external_execution_silent": null, "approval_type": null, "approval_id": null, "parent_tool_call_id": null}, {"tool_call_id": "c2", "tool_name": "depth", "tool_args": {"river": "Elbe", "place": "Dresden"}, "tool_call_error": false, "result": "2.1 m", "metrics": {"start_time": 1795982242.7801955, "end_time": 1795982242.7805583, "duration": 0.0003628509948612191}, "child_run_id": null, "stop_after_tool_call": false, "created_at": 1795982242, "requires_confirmation": null, "confirmed": null, "confirmation_note": null, "requires_user_input": null, "user_input_schema": null, "user_feedback_schema": null, "answered": null, "external_execution_required": null, "external_execution_silent": null, "approval_type": null, "approval_id": null, "parent_tool_call_id": null}], "input": {"input_content": "How deep is the Elbe in Dresden?"}}',1795982242,1795982242);
CREATE TABLE agno_schema_versions (
	table_name VARCHAR NOT NULL, 
	version VARCHAR NOT NULL, 
	created_at VARCHAR NOT NULL, 
	updated_at VARCHAR, 
	PRIMARY KEY (table_name)
);
INSERT INTO "agno_schema_versions" VALUES('agno_sessions','3.0.0','2026-11-29T19:57:22.867741','2026-11-29T19:57:22.867741');
INSERT INTO "agno_schema_versions" VALUES('agno_runs','3.0.0','2026-11-29T19:57:22.976842','2026-11-29T19:57:22.976842');
CREATE TABLE agno_sessions (
	session_id VARCHAR NOT NULL, 
	session_type VARCHAR NOT NULL, 
	agent_id VARCHAR, 
	team_id VARCHAR, 
	workflow_id VARCHAR, 
	user_id VARCHAR, 
	session_data JSON, 
	agent_data JSON, 
	team_data JSON, 
	workflow_data JSON, 
	metadata JSON, 
	summary JSON, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT, 
	PRIMARY KEY (session_id)
);
INSERT INTO "agno_sessions" VALUES('river-1','agent','smart-rosalind-eebaca87',NULL,NULL,NULL,'{"session_state": {}, "session_metrics": {}}','{"agent_id": "smart-rosalind-eebaca87", "model": {"name": "OpenAIChat", "id": "script", "provider": "OpenAI"}}',NULL,NULL,'null','null',1795982241,1795982241);
CREATE INDEX idx_agno_sessions_created_at ON agno_sessions (created_at);
CREATE INDEX idx_agno_sessions_session_type ON agno_sessions (session_type);
CREATE INDEX idx_agno_schema_versions_created_at ON agno_schema_versions (created_at);
CREATE INDEX idx_agno_runs_session_id ON agno_runs (session_id);
CREATE INDEX idx_agno_runs_run_type ON agno_runs (run_type);
CREATE INDEX idx_agno_runs_agent_id ON agno_runs (agent_id);
CREATE INDEX idx_agno_runs_workflow_id ON agno_runs (workflow_id);
CREATE INDEX idx_agno_runs_session_id_run_index ON agno_runs (session_id, run_index);
CREATE INDEX idx_agno_runs_user_id ON agno_runs (user_id);
CREATE INDEX idx_agno_runs_team_id ON agno_runs (team_id);
CREATE INDEX idx_agno_runs_status ON agno_runs (status);
CREATE INDEX idx_agno_runs_created_at ON agno_runs (created_at);
COMMIT;
