#include "worker.h"
__attribute__((weak)) void do_watch(struct worker *w, const struct request *r){(void)r;answer_error(w,ERR_UNSUPPORTED,0,"watch",NULL,"not here yet");}
__attribute__((weak)) void do_tar_in(struct worker *w, const struct request *r){(void)r;answer_error(w,ERR_UNSUPPORTED,0,"tar",NULL,"not here yet");}
__attribute__((weak)) void do_tar_out(struct worker *w, const struct request *r){(void)r;answer_error(w,ERR_UNSUPPORTED,0,"tar",NULL,"not here yet");}
