CREATE TABLE mastra_messages (
  "id" TEXT NOT NULL PRIMARY KEY,
  "thread_id" TEXT NOT NULL,
  "content" TEXT NOT NULL,
  "role" TEXT NOT NULL,
  "type" TEXT NOT NULL,
  "createdAt" TEXT NOT NULL,
  "resourceId" TEXT
);
INSERT INTO mastra_messages VALUES ('06bdc6c6-dcd5-4676-878c-c016bc4741a2','river','{"format":2,"parts":[{"type":"text","text":"How deep is the Elbe in Dresden?","createdAt":1795993124924}],"content":"How deep is the Elbe in Dresden?"}','user','v2','2026-11-29T22:58:44.924Z','mia');
INSERT INTO mastra_messages VALUES ('a195c810-e894-4432-befe-719a40d0b62a','river','{"format":2,"parts":[{"type":"reasoning","reasoning":"Ask the gauge.","details":[{"type":"text","text":"Ask the gauge."}],"createdAt":1795993126406},{"type":"text","text":"Let me see.","createdAt":1795993126406},{"type":"tool-invocation","toolInvocation":{"state":"output-error","toolCallId":"c1","toolName":"depth","args":{"river":"Elbe"},"errorText":"name a place"}},{"type":"step-start","createdAt":1795993126816,"model":"script.chat/script"},{"type":"text","text":"Once more.","createdAt":1795993126986},{"type":"tool-invocation","toolInvocation":{"state":"result","toolCallId":"c2","toolName":"depth","args":{"river":"Elbe","place":"Dresden"},"result":{"depth":"2.1 m"}}},{"type":"step-start","createdAt":1795993127187,"model":"script.chat/script"},{"type":"text","text":"The Elbe is 2.1 m deep in Dresden.","createdAt":1795993127221}],"content":"The Elbe is 2.1 m deep in Dresden.","metadata":{"modelId":"script","provider":"script.chat","traceId":"3cef8e159a7c8e1cfd3fe5b80105b47f"}}','assistant','v2','2026-11-29T22:58:46.406Z','mia');
