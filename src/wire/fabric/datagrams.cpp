// Messages to addresses (FI_EP_RDM).
#if __has_include(<rdma/fabric.h>)

#include <fmt/format.h>

#include "tandem/error.h"
#include "wire/fabric/lane.h"
#include "wire/fabric/sleep.h"

namespace tandem::wire {

namespace {

class Datagrams final : public Endpoint {
 public:
  explicit Datagrams(Info found) : fabric_(std::move(found)), lane_(fabric_.info(), fabric_.get(), kSends, kReceives) {
    fi_av_attr peers{};
    peers.type = FI_AV_TABLE;
    peers_ = opened<fid_av>("addresses", [&](auto** to) { return ::fi_av_open(lane_.domain(), &peers, to, nullptr); });
    auto* const described = const_cast<fi_info*>(&fabric_.info());
    endpoint_ =
        opened<fid_ep>("endpoint", [&](auto** to) { return ::fi_endpoint(lane_.domain(), described, to, nullptr); });
    check_fabric(::fi_ep_bind(endpoint_.get(), &lane_.completions()->fid, FI_TRANSMIT | FI_RECV), "endpoint");
    check_fabric(::fi_ep_bind(endpoint_.get(), &peers_->fid, 0), "endpoint");
    check_fabric(::fi_enable(endpoint_.get()), "endpoint");
    lane_.receive_by(endpoint_.get());
  }

  std::string name() const override { return fabric_.name(); }
  Bytes address() const override {
    Bytes address(256);
    std::size_t bytes = address.size();
    check_fabric(::fi_getname(&endpoint_->fid, address.data(), &bytes), "address");
    address.resize(bytes);
    return address;
  }

  void connect(const std::vector<Bytes>& addresses) override {
    addresses_.assign(addresses.size(), FI_ADDR_UNSPEC);
    for (std::size_t pe = 0; pe < addresses.size(); ++pe) {
      if (addresses[pe].empty()) continue;
      check_address(addresses, pe, address().size());
      if (::fi_av_insert(peers_.get(), addresses[pe].data(), 1, &addresses_[pe], 0, nullptr) != 1)
        throw RuntimeFailure(fmt::format("libfabric: the address of PE {} is none", pe));
    }
  }

  Room room() const override { return {kFabricMessageBytes, lane_.memory(), lane_.memory_bytes()}; }
  bool send(int pe, View header, View data, const OnSent& sent) override {
    return lane_.send_by(endpoint_.get(), addresses_[static_cast<std::size_t>(pe)], pe, header, data, sent);
  }
  bool poll(const Take& take) override { return lane_.poll(take); }
  void release(View message) override { lane_.release(message); }
  void wait(int ms) override { sleep_.wait({lane_.sleeping_descriptor()}, ms); }
  void wake() override { sleep_.wake(); }
  std::vector<Break> breaks() override { return lane_.breaks(); }

 private:
  static constexpr std::size_t kSends = 16;
  static constexpr std::size_t kReceives = 32;

  const Fabric fabric_;
  Sleep sleep_;
  Lane lane_;
  Owned<fid_av> peers_;
  Owned<fid_ep> endpoint_;  // closed before all that it uses
  std::vector<fi_addr_t> addresses_;
};

}  // namespace

std::unique_ptr<Endpoint> make_datagram_endpoint(const std::string& provider, const std::string& address) {
  return std::make_unique<Datagrams>(find_provider(provider, address, FI_EP_RDM));
}

}  // namespace tandem::wire

#endif
