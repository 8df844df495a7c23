/* A network in which every address is the sandbox's own, so the guest can answer whatever a program connects to. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>

#include "launch/launch.h"

struct route_request {
  struct nlmsghdr header;
  struct rtmsg route;
  struct rtattr interface_header;
  uint32_t interface;
};

struct address_request {
  struct nlmsghdr header;
  struct ifaddrmsg address;
  struct rtattr local_header;
  struct in_addr local;
};

enum { ASK = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE };

/* Returns 0 or an errno. */
static int ask(int fd, const void *request, size_t length) {
  struct {
    struct nlmsghdr header;
    struct nlmsgerr error;
    char rest[1024];
  } answer;
  if (send(fd, request, length, 0) != (ssize_t)length) return errno;
  ssize_t got = recv(fd, &answer, sizeof answer, 0);
  if (got < (ssize_t)(sizeof answer.header + sizeof(int)) || answer.header.nlmsg_type != NLMSG_ERROR) return EPROTO;
  return -answer.error.error;
}

/* `ip route add local default dev lo` */
static int add_local_default(int fd, unsigned char family) {
  struct route_request request = {
      .header = {.nlmsg_len = sizeof request, .nlmsg_type = RTM_NEWROUTE, .nlmsg_flags = ASK},
      .route = {.rtm_family = family, .rtm_table = RT_TABLE_LOCAL, .rtm_protocol = RTPROT_BOOT, .rtm_scope = RT_SCOPE_HOST, .rtm_type = RTN_LOCAL},
      .interface_header = {.rta_len = RTA_LENGTH(sizeof(uint32_t)), .rta_type = RTA_OIF},
      .interface = if_nametoindex("lo"),
  };
  return ask(fd, &request, sizeof request);
}

/*
 * Some programs look up only addresses of the families that the machine has. With only loopback, they would find no
 * address.
 */
static int add_address(int fd) {
  struct address_request request = {
      .header = {.nlmsg_len = sizeof request, .nlmsg_type = RTM_NEWADDR, .nlmsg_flags = ASK},
      .address = {.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_scope = RT_SCOPE_UNIVERSE, .ifa_index = if_nametoindex("lo")},
      .local_header = {.rta_len = RTA_LENGTH(sizeof(struct in_addr)), .rta_type = IFA_LOCAL},
      .local.s_addr = htonl(0xC0000202), /* 192.0.2.2, in an unused range */
  };
  return ask(fd, &request, sizeof request);
}

void route_everything_here(void) {
  cleanup_fd int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) launch_fail("network", "cannot open a netlink socket");
  errno = add_local_default(fd, AF_INET);
  if (errno != 0) launch_fail("network", "cannot add a route for every address");
  errno = add_address(fd);
  if (errno != 0) launch_fail("network", "cannot add an address");
  /* Without IPv6, its addresses lead nowhere. */
  add_local_default(fd, AF_INET6);
}
