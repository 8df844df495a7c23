#include "guest.h"
bool request_file(struct connection *c, const struct frame_header *h, const uint8_t *p) { (void)p; reply_error(c, h->stream, ERR_UNSUPPORTED, 0, "files"); return true; }
bool relay_frame(struct stream *s, const struct frame_header *h, const uint8_t *p) { (void)s; (void)h; (void)p; return true; }
void relay_cancel(struct stream *s) { stream_remove(s); }
void relay_spawned(struct worker *w, pid_t pid, int error) { (void)w; (void)pid; (void)error; }
bool relay_owns(const struct guest *g, pid_t pid) { (void)g; (void)pid; return false; }
void relay_resume(struct connection *c) { (void)c; }
