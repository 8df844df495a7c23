#include "guest.h"
bool request_connect(struct connection *c, const struct frame_header *h, const uint8_t *p) { (void)p; reply_error(c, h->stream, ERR_UNSUPPORTED, 0, "ports"); return true; }
bool request_listeners(struct connection *c, const struct frame_header *h) { reply_error(c, h->stream, ERR_UNSUPPORTED, 0, "ports"); return true; }
bool port_frame(struct stream *s, const struct frame_header *h, const uint8_t *p) { (void)s; (void)h; (void)p; return true; }
void port_cancel(struct stream *s) { stream_remove(s); }
void port_resume(struct stream *s) { (void)s; }
