PRAGMA foreign_keys = OFF;
BEGIN TRANSACTION;
CREATE TABLE message_store (
	id INTEGER NOT NULL, 
	session_id TEXT, 
	message TEXT, 
	PRIMARY KEY (id)
);
INSERT INTO "message_store" VALUES(1,'river-1','{"type": "human", "data": {"content": "How deep is the Elbe in Dresden?", "additional_kwargs": {}, "response_metadata": {}, "type": "human", "name": null, "id": null}}');
INSERT INTO "message_store" VALUES(2,'river-1','{"type": "ai", "data": {"content": "Ask the gauge.", "additional_kwargs": {}, "response_metadata": {}, "type": "ai", "name": null, "id": null, "tool_calls": [{"name": "depth", "args": {"river": "Elbe"}, "id": "c0", "type": "tool_call"}], "invalid_tool_calls": [], "usage_metadata": null}}');
INSERT INTO "message_store" VALUES(3,'river-1','{"type": "tool", "data": {"content": "Error: name a place", "additional_kwargs": {}, "response_metadata": {}, "type": "tool", "name": null, "id": null, "tool_call_id": "c0", "artifact": null, "status": "success"}}');
INSERT INTO "message_store" VALUES(4,'river-1','{"type": "ai", "data": {"content": "Once more.", "additional_kwargs": {}, "response_metadata": {}, "type": "ai", "name": null, "id": null, "tool_calls": [{"name": "depth", "args": {"river": "Elbe", "place": "Dresden"}, "id": "c1", "type": "tool_call"}], "invalid_tool_calls": [], "usage_metadata": null}}');
INSERT INTO "message_store" VALUES(5,'river-1','{"type": "tool", "data": {"content": "2.1 m", "additional_kwargs": {}, "response_metadata": {}, "type": "tool", "name": null, "id": null, "tool_call_id": "c1", "artifact": null, "status": "success"}}');
INSERT INTO "message_store" VALUES(6,'river-1','{"type": "ai", "data": {"content": "The Elbe is 2.1 m deep in Dresden.", "additional_kwargs": {}, "response_metadata": {}, "type": "ai", "name": null, "id": null, "tool_calls": [], "invalid_tool_calls": [], "usage_metadata": null}}');
COMMIT;
